import CSQLite
import CountersignWire
import Glibc

/// One connection to an SQLite file. Not safe to share between threads; its owner keeps a lock.
final class SQLiteConnection {
    let handle: OpaquePointer
    let statements: StatementCache
    let path: String
    /// The schema of this build.
    let layout: StoreLayout

    /// What a connection may do with its file.
    enum Access {
        case reading
        case readingAndWriting

        fileprivate var flag: Int32 {
            switch self {
            case .reading: SQLITE_OPEN_READONLY
            case .readingAndWriting: SQLITE_OPEN_READWRITE
            }
        }
    }

    /// Opens a file that exists.
    init(
        path: String, access: Access = .readingAndWriting, layout: StoreLayout = .current
    ) throws(OperationalError) {
        var handle: OpaquePointer?
        let flags = access.flag | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
        let code = sqlite3_open_v2(path, &handle, flags, nil)
        guard code == SQLITE_OK, let handle else {
            let fault = SQLiteResultCode.fault(code, on: handle, path: path)
            sqlite3_close_v2(handle)
            throw fault
        }
        self.handle = handle
        self.path = path
        self.layout = layout
        statements = StatementCache(handle)
        sqlite3_busy_timeout(handle, 5000)
        // A schema is data from a file: it must not be able to call unsafe SQL functions.
        cs_sqlite_set(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        // A write-ahead log left by an unclean end stays beside the file until both are known to be ours to
        // change.
        if access == .reading || Glibc.access("\(path)-wal", F_OK) == 0 {
            cs_sqlite_set(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        }
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

    func statement(_ sql: String, binding values: [SQLValue]) throws(OperationalError) -> Statement {
        try Statement.make(sql, binding: values, on: handle, cache: statements, path: path)
    }

    /// The number of rows that the last statement has changed.
    var changedRows: Int { Int(sqlite3_changes(handle)) }

    /// Undoes the transaction. Some errors have already done so, and this then has no effect.
    func rollBack() { sqlite3_exec(handle, "ROLLBACK", nil, nil, nil) }

    /// Undoes what was done since the savepoint `part`, or all of the transaction if that fails.
    func rollBackPart() {
        guard isInTransaction else { return }
        if sqlite3_exec(handle, "ROLLBACK TO part; RELEASE part", nil, nil, nil) != SQLITE_OK { rollBack() }
    }

    /// False again if an error, such as a full disk, has rolled everything back.
    var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

    private func fault(_ code: Int32) -> OperationalError {
        SQLiteResultCode.fault(code, on: handle, path: path)
    }
}

extension Database {
    /// The connection, if this is an SQLite file.
    var sqlite: SQLiteConnection? {
        if case .sqlite(let connection) = driver { connection } else { nil }
    }
}
