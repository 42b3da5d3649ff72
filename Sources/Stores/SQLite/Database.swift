import CSQLite
import CountersignWire
import Glibc

/// One connection to an SQLite file. Not safe to share between threads; its owner keeps a lock.
final class Database {
    let handle: OpaquePointer
    private let statements: StatementCache
    let path: String

    /// Opens a file that exists.
    init(path: String) throws(Fault) {
        var handle: OpaquePointer?
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
        let code = sqlite3_open_v2(path, &handle, flags, nil)
        guard code == SQLITE_OK, let handle else {
            let fault = SQLiteFault.fault(code, on: handle, path: path)
            sqlite3_close_v2(handle)
            throw fault
        }
        self.handle = handle
        self.path = path
        statements = StatementCache(handle)
        sqlite3_busy_timeout(handle, 5000)
        // A schema is data from a file: it must not be able to run functions of ours.
        cs_sqlite_set(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        // A journal that an unclean end left is kept beside the file until we know that both are ours to change.
        if access("\(path)-wal", F_OK) == 0 { cs_sqlite_set(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1) }
    }

    /// Lets the last connection that closes carry the journal over into the file.
    func mayCheckpoint() { cs_sqlite_set(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0) }

    /// Whether the file is empty, or begins as every SQLite file does. Asked first, because SQLite would take the first
    /// page from the journal, if there is one, and not notice. Source: sqlite.org/fileformat.html §1.3.
    ///
    /// Read through SQLite's own descriptor. To open the file beside it and close it again would drop all of this
    /// process's locks on it, its other connections' too; another process would then take itself for the last one, and
    /// delete the journal under our feet. Source: sqlite.org/howtocorrupt.html §2.2.
    var hasItsMagic: Bool {
        var head = [UInt8](repeating: 0, count: 16)
        guard cs_sqlite_read(handle, &head, Int32(head.count), 0) == SQLITE_OK else { return false }
        return head == Array("SQLite format 3\0".utf8) || head.allSatisfy { $0 == 0 }
    }

    deinit {
        statements.empty()
        sqlite3_close_v2(handle)
    }

    /// Runs statements that take no values and give no rows.
    func execute(_ sql: String) throws(Fault) {
        let code = sqlite3_exec(handle, sql, nil, nil, nil)
        guard code == SQLITE_OK else { throw fault(code) }
    }

    /// Runs one statement; answers how many rows it changed.
    @discardableResult
    func run(_ sql: String, _ values: SQLValue...) throws(Fault) -> Int { try run(sql, values) }

    @discardableResult
    func run(_ sql: String, _ values: [SQLValue]) throws(Fault) -> Int {
        let statement = try statement(sql, values)
        while try statement.step() {}
        return Int(sqlite3_changes(handle))
    }

    func rows<Row>(
        _ sql: String, _ values: SQLValue..., read: (borrowing Statement) throws(Fault) -> Row
    ) throws(Fault) -> [Row] {
        try rows(sql, values, read: read)
    }

    func rows<Row>(
        _ sql: String, _ values: [SQLValue], read: (borrowing Statement) throws(Fault) -> Row
    ) throws(Fault) -> [Row] {
        let statement = try statement(sql, values)
        var rows: [Row] = []
        while try statement.step() { rows.append(try read(statement)) }
        return rows
    }

    /// The first column of the first row; nil where there is none.
    func integer(_ sql: String, _ values: SQLValue...) throws(Fault) -> Int64? {
        try rows(sql, values) { $0.integer(0) }.first
    }

    /// The number of the row that was inserted last.
    var lastRow: Int64 { sqlite3_last_insert_rowid(handle) }

    private func statement(_ sql: String, _ values: [SQLValue]) throws(Fault) -> Statement {
        try Statement.make(sql, values, on: handle, statements, path: path)
    }

    /// All of `body` or none of it. `IMMEDIATE` takes the write lock at once: a transaction that begins by reading and
    /// then writes could be refused half-way.
    func transaction<Result>(_ body: () throws(Fault) -> Result) throws(Fault) -> Result {
        try bracketed("BEGIN IMMEDIATE", body)
    }

    /// Several reads as of one moment.
    func reading<Result>(_ body: () throws(Fault) -> Result) throws(Fault) -> Result {
        try bracketed("BEGIN DEFERRED", body)
    }

    private func bracketed<Result>(_ begin: String, _ body: () throws(Fault) -> Result) throws(Fault) -> Result {
        try run(begin)
        do {
            let result = try body()
            try run("COMMIT")
            return result
        } catch {
            // Some faults have rolled back by themselves, and this then says so; the first fault is the one to tell.
            sqlite3_exec(handle, "ROLLBACK", nil, nil, nil)
            throw error
        }
    }

    /// The same within a transaction, which goes on where `body` fails; unless what failed has ended it
    /// (``isInTransaction``). Source: sqlite.org/lang_savepoint.html.
    func savepoint<Result>(_ body: () throws(Fault) -> Result) throws(Fault) -> Result {
        // Where a fault has ended the transaction, a savepoint would begin another, and its release be a commit.
        guard isInTransaction else {
            throw Fault(.unreachable, "\(path): the transaction was lost; nothing was changed")
        }
        try run("SAVEPOINT part")
        do {
            let result = try body()
            try run("RELEASE part")
            return result
        } catch {
            if isInTransaction, sqlite3_exec(handle, "ROLLBACK TO part; RELEASE part", nil, nil, nil) != SQLITE_OK {
                sqlite3_exec(handle, "ROLLBACK", nil, nil, nil)
            }
            throw error
        }
    }

    /// False again where a fault, a full disk's for one, has rolled everything back by itself.
    var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

    private func fault(_ code: Int32) -> Fault {
        SQLiteFault.fault(code, on: handle, path: path)
    }
}

/// A value as SQLite keeps it.
enum SQLValue {
    case null
    case integer(Int64)
    case text(String)
    case blob([UInt8])

    static func optional(_ number: Int64?) -> SQLValue { number.map { .integer($0) } ?? .null }
    static func optional(_ text: String?) -> SQLValue { text.map { .text($0) } ?? .null }
    static func optional(_ bytes: [UInt8]?) -> SQLValue { bytes.map { .blob($0) } ?? .null }
}
