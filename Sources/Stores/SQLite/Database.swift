import CSQLite
import CountersignWire
import Glibc

/// One connection to an SQLite file. Not safe to share between threads; its owner keeps a lock.
final class Database {
    let handle: OpaquePointer
    private let statements: StatementCache
    let path: String
    let recorder = RowRecorder()

    /// Opens a file that exists.
    init(path: String) throws(OperationalError) {
        var handle: OpaquePointer?
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
        let code = sqlite3_open_v2(path, &handle, flags, nil)
        guard code == SQLITE_OK, let handle else {
            let fault = SQLiteResultCode.fault(code, on: handle, path: path)
            sqlite3_close_v2(handle)
            throw fault
        }
        self.handle = handle
        self.path = path
        statements = StatementCache(handle)
        recorder.defineFunctions(on: handle)
        sqlite3_busy_timeout(handle, 5000)
        // A schema is data from a file: it must not be able to call unsafe SQL functions.
        cs_sqlite_set(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        // A write-ahead log left by an unclean end stays beside the file until both are known to be ours to
        // change.
        if access("\(path)-wal", F_OK) == 0 { cs_sqlite_set(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1) }
    }

    /// Lets the last connection that closes copy the write-ahead log into the file.
    func mayCheckpoint() { cs_sqlite_set(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0) }

    /// Whether the file is empty, or begins like every SQLite file. This is checked first, because SQLite
    /// would read the first page from the write-ahead log, if there is one, and not notice. Source:
    /// sqlite.org/fileformat.html §1.3.
    ///
    /// It reads through SQLite's own descriptor. Opening and closing the file separately would drop all of
    /// this process's locks on it, including those of its other connections; another process would then
    /// consider itself the last one and delete the log in use. Source: sqlite.org/howtocorrupt.html §2.2.
    var hasSQLiteHeader: Bool {
        var head = [UInt8](repeating: 0, count: 16)
        guard cs_sqlite_read(handle, &head, Int32(head.count), 0) == SQLITE_OK else { return false }
        return head == Array("SQLite format 3\0".utf8) || head.allSatisfy { $0 == 0 }
    }

    /// Reads that many bytes of the file through SQLite's own descriptor; zeros behind the end.
    func read(_ bytes: inout [UInt8], at offset: Int64) -> Bool {
        for place in bytes.indices { bytes[place] = 0 }
        return cs_sqlite_read(handle, &bytes, Int32(bytes.count), offset) == SQLITE_OK
    }

    deinit {
        statements.empty()
        sqlite3_close_v2(handle)
    }

    /// Runs statements without values and rows.
    func execute(_ sql: String) throws(OperationalError) {
        let code = sqlite3_exec(handle, sql, nil, nil, nil)
        guard code == SQLITE_OK else { throw fault(code) }
    }

    /// Runs one statement; returns the number of rows that it changed.
    @discardableResult
    func run(_ sql: String, binding values: SQLValue...) throws(OperationalError) -> Int {
        try run(sql, binding: values)
    }

    @discardableResult
    func run(_ sql: String, binding values: [SQLValue]) throws(OperationalError) -> Int {
        let statement = try statement(sql, binding: values)
        while try statement.step() {}
        return Int(sqlite3_changes(handle))
    }

    /// Runs a statement that changes exactly one row, named `row` in the error. The schema is the file's, and
    /// could turn the change into nothing without an error.
    func run(_ sql: String, changing row: String, binding values: [SQLValue]) throws(OperationalError) {
        guard try run(sql, binding: values) == 1 else {
            throw OperationalError(
                .failed,
                message: "\(path): \(row): a change had no effect; `countersign audit verify` tells more")
        }
    }

    func rows<Row>(
        _ sql: String, binding values: SQLValue...,
        read: (borrowing Statement) throws(OperationalError) -> Row
    ) throws(OperationalError) -> [Row] {
        try rows(sql, binding: values, read: read)
    }

    func rows<Row>(
        _ sql: String, binding values: [SQLValue], read: (borrowing Statement) throws(OperationalError) -> Row
    ) throws(OperationalError) -> [Row] {
        let statement = try statement(sql, binding: values)
        var rows: [Row] = []
        while try statement.step() { rows.append(try read(statement)) }
        return rows
    }

    /// The first column of the first row; nil if there is none.
    func integer(_ sql: String, binding values: SQLValue...) throws(OperationalError) -> Int64? {
        try rows(sql, binding: values) { $0.integer(0) }.first
    }

    /// The number of the row that was inserted last.
    var lastRow: Int64 { sqlite3_last_insert_rowid(handle) }

    private func statement(_ sql: String, binding values: [SQLValue]) throws(OperationalError) -> Statement {
        try Statement.make(sql, binding: values, on: handle, cache: statements, path: path)
    }

    /// Applies all of `body` or none of it. `IMMEDIATE` takes the write lock at once: a transaction that
    /// reads first and then writes could be refused half-way.
    func transaction<Result>(_ body: () throws(OperationalError) -> Result) throws(OperationalError) -> Result
    {
        try runTransaction("BEGIN IMMEDIATE", body: body)
    }

    /// Several reads of one state of the database.
    func readTransaction<Result>(_ body: () throws(OperationalError) -> Result) throws(OperationalError)
        -> Result
    {
        try runTransaction("BEGIN DEFERRED", body: body)
    }

    private func runTransaction<Result>(_ begin: String, body: () throws(OperationalError) -> Result)
        throws(OperationalError) -> Result
    {
        try run(begin)
        do {
            let result = try body()
            try recorder.flush(into: self)
            try run("COMMIT")
            return result
        } catch {
            recorder.reset()
            // Some errors have already rolled back, and this statement then fails; the first error is the
            // one to report.
            sqlite3_exec(handle, "ROLLBACK", nil, nil, nil)
            throw error
        }
    }

    /// The same within a transaction, which continues if `body` throws, unless the error has ended it
    /// (``isInTransaction``). Source: sqlite.org/lang_savepoint.html.
    func savepoint<Result>(_ body: () throws(OperationalError) -> Result) throws(OperationalError) -> Result {
        // If an error has ended the transaction, a savepoint would begin another, and its release would
        // commit it.
        guard isInTransaction else {
            throw OperationalError(
                .unreachable, message: "\(path): the transaction was lost; nothing was changed")
        }
        try run("SAVEPOINT part")
        let recorded = recorder.pending
        do {
            let result = try body()
            try run("RELEASE part")
            return result
        } catch {
            recorder.restore(recorded)
            if isInTransaction,
                sqlite3_exec(handle, "ROLLBACK TO part; RELEASE part", nil, nil, nil) != SQLITE_OK
            {
                sqlite3_exec(handle, "ROLLBACK", nil, nil, nil)
            }
            throw error
        }
    }

    /// False again if an error, such as a full disk, has rolled everything back.
    var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

    private func fault(_ code: Int32) -> OperationalError {
        SQLiteResultCode.fault(code, on: handle, path: path)
    }
}

/// A value that SQLite stores.
enum SQLValue {
    case null
    case integer(Int64)
    case text(String)
    case blob([UInt8])

    static func optional(_ number: Int64?) -> SQLValue { number.map { .integer($0) } ?? .null }
    static func optional(_ text: String?) -> SQLValue { text.map { .text($0) } ?? .null }
    static func optional(_ bytes: [UInt8]?) -> SQLValue { bytes.map { .blob($0) } ?? .null }
}
