import CSQLite
import CountersignAuthority
import CountersignThreads
import CountersignWire
import Glibc

/// A database file and one connection to it, opened at first use. Safe to share: the connection is used
/// under the lock.
final class SQLiteFile: @unchecked Sendable {
    private let path: String
    private let layout: StoreLayout
    private let inspection: StoreInspection
    /// Nil until ``authenticate(by:)``.
    private var rows: RowAuthenticator?
    /// Guards `database` and `rows`.
    private let lock = ReadWriteLock()
    private var database: Database?
    /// Whether the file is known to have a layout, which it then keeps.
    private var isMade = false
    /// Whether the log may be copied into the file at the end, once the file is known to be sound.
    private var isPrepared = false

    private let drill: OutageDrill?

    init(
        path: String, inspecting inspection: StoreInspection, rows: RowAuthenticator?,
        layout: StoreLayout = .current, interruptedBy drill: OutageDrill? = nil
    ) {
        (self.path, self.layout) = (path, layout)
        self.drill = drill
        self.inspection = inspection
        self.rows = rows
    }

    deinit { mayCheckpoint() }

    func authenticate(by rows: RowAuthenticator) throws(OperationalError) {
        try lock.write { () throws(OperationalError) in
            self.rows = rows
            if let database { try database.recorder.start(by: rows, on: database) }
        }
    }

    func prepare() throws(OperationalError) -> SchemaOutcome {
        try lock.write { () throws(OperationalError) in
            if try existing() == nil { try SQLiteFile.makeEmpty(path) }
            guard let database = try existing() else { throw SQLiteResultCode.damaged(path) }
            isPrepared = true
            mayCheckpoint()
            guard try database.schemaLevel() != layout.level else { return SchemaOutcome() }
            try requireSound()
            let outcome = try layout.migrate(database)
            try database.recorder.start(by: rows, on: database)
            return outcome
        }
    }

    func schemaPlan() throws(OperationalError) -> SchemaPlan {
        try lock.write { () throws(OperationalError) in
            try layout.filePlan(at: existing()?.schemaLevel() ?? 0)
        }
    }

    func close() {
        lock.write {
            mayCheckpoint()
            database = nil
            isMade = false
            isPrepared = false
        }
    }

    /// The result of `body`, which reads one state of the database; `empty` while the file has no layout
    /// yet.
    func read<Result>(
        whenEmpty empty: Result, body: (Database) throws(OperationalError) -> Result
    ) throws(OperationalError) -> Result {
        try lock.write { () throws(OperationalError) in
            guard let database = try existing() else { return empty }
            // Within the same transaction: each transaction acquires and releases file locks by system
            // calls.
            return try database.readTransaction { () throws(OperationalError) in
                if !isMade { isMade = try database.schemaLevel() > 0 }
                return isMade ? try body(database) : empty
            }
        }
    }

    /// Applies all changes of `body` or none; they are durable when this returns.
    func write<Result>(_ body: (Database) throws(OperationalError) -> Result) throws(OperationalError)
        -> Result
    {
        try lock.write { () throws(OperationalError) in
            guard let database = try existing() else {
                throw OperationalError(.unreachable, message: "\(path): no database there")
            }
            try requireSound()
            return try database.transaction { () throws(OperationalError) in try body(database) }
        }
    }

    /// Uses the connection outside a transaction.
    func use<Result>(_ body: (Database) throws(OperationalError) -> Result) throws(OperationalError) -> Result
    {
        try lock.write { () throws(OperationalError) in
            guard let database = try existing() else {
                throw OperationalError(.unreachable, message: "\(path): no database there")
            }
            try requireSound()
            return try body(database)
        }
    }

    /// Opens the file, if it exists, and waits until every page that is to be checked is known to be sound.
    func inspect() throws(OperationalError) {
        try lock.write { () throws(OperationalError) in
            guard try existing() != nil else { return }
            try requireSound()
        }
    }

    private func requireSound() throws(OperationalError) {
        if case .concurrent(let check) = inspection { try check.requireSound() }
    }

    /// Lets the log be copied into a file that was prepared. A damaged file and its log stay as they are.
    private func mayCheckpoint() {
        guard isPrepared else { return }
        if case .concurrent(let check) = inspection, !check.hasPassed { return }
        database?.sqlite?.mayCheckpoint()
    }

    /// Creates the file with mode 0600; SQLite gives its write-ahead log the same mode.
    private static func makeEmpty(_ path: String) throws(OperationalError) {
        let file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        if file < 0, errno == EEXIST { return }
        guard file >= 0 else {
            throw SystemCallError(errno, while: "\(path): cannot make the database").fault(.unreachable)
        }
        Glibc.close(file)
    }

    /// The connection; nil if the file does not exist.
    private func existing() throws(OperationalError) -> Database? {
        try drill?.requireOff(path)
        try rows?.head?.requireUsable()
        if let database { return database }
        guard access(path, F_OK) == 0 else {
            if errno == ENOENT { return nil }
            throw SystemCallError(errno, while: "\(path): cannot open the database").fault(.unreachable)
        }
        let connection = try SQLiteConnection(path: path, layout: layout)
        let opened = Database(connection)
        guard connection.hasSQLiteHeader else { throw SQLiteResultCode.damaged(path) }
        try check(opened)
        try opened.execute("PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL; PRAGMA secure_delete = ON")
        try opened.recorder.start(by: rows, on: opened)
        database = opened
        return opened
    }

    private func check(_ database: Database) throws(OperationalError) {
        let application = try database.integer("PRAGMA application_id")
        let tables = try database.integer("SELECT count(*) FROM sqlite_schema") ?? 0
        guard application == StoreLayout.applicationID || tables == 0 else {
            throw OperationalError(
                .unreachable,
                message: "\(database.path): a database of another program; expected one of countersign's")
        }
        let level = try database.schemaLevel()
        guard level <= layout.level else {
            throw OperationalError(
                .unreachable,
                message: "\(database.path): made by a newer countersign; expected this version's or older")
        }
        if level == layout.level { try database.refuse(try database.schemaDifferences()) }
        switch inspection {
        case .everyPage: try database.requireSoundPages()
        case .concurrent(let check): try check.begin(beside: database)
        case .header: break
        }
        // A property of the file: only the first call writes.
        _ = try database.rows("PRAGMA journal_mode = WAL") { $0.text(0) }
    }
}

/// Translates SQLite's result codes to messages that say what to do. Source: sqlite.org/rescode.html.
enum SQLiteResultCode {
    /// `SQLITE_IOERR_SHMSIZE`, a macro that does not import.
    private static let sharedMemorySize = SQLITE_IOERR | 19 << 8

    /// The error of the last call on `connection`, which is nil if it could not be opened.
    static func fault(_ code: Int32, on connection: OpaquePointer?, path: String) -> OperationalError {
        switch code & 0xFF {
        case SQLITE_NOTADB, SQLITE_CORRUPT:
            return damaged(path)
        case SQLITE_FULL:
            return full(path)
        case SQLITE_READONLY, SQLITE_PERM, SQLITE_AUTH:
            return OperationalError(
                .unreachable,
                message: "\(path): cannot write to it; expected a file and a folder that this user may write")
        case SQLITE_CANTOPEN:
            return OperationalError(
                .unreachable,
                message: "\(path): cannot open the database; expected a readable and writable file")
        case SQLITE_BUSY, SQLITE_LOCKED:
            return OperationalError(
                .unreachable, message: "\(path): another process has kept it locked for over five seconds")
        case SQLITE_IOERR:
            let system = connection.map { sqlite3_system_errno($0) } ?? 0
            // The write-ahead log's index is mapped memory; these codes mean that the disk has no room for
            // it.
            if system == ENOSPC || system == EDQUOT || code == sharedMemorySize { return full(path) }
            return OperationalError(
                .unreachable,
                message: "\(path): the disk failed: \(reason(system: system, code: code)) (SQLite \(code))")
        case SQLITE_CONSTRAINT where isFormerKey(on: connection):
            return OperationalError(
                .unreachable, message: "\(path): the master key is being replaced; nothing was changed")
        default:
            return OperationalError(
                .failed,
                message:
                    "\(path): "
                    + "\(String(cString: connection.map { sqlite3_errmsg($0) } ?? sqlite3_errstr(code)))"
            )
        }
    }

    private static func isFormerKey(on connection: OpaquePointer?) -> Bool {
        connection.map { String(cString: sqlite3_errmsg($0)) } == SQLiteTables.formerKey
    }

    /// The system's message. If a commit fails, SQLite keeps no errno, only the failed operation.
    private static func reason(system: Int32, code: Int32) -> String {
        if system != 0 { return String(cString: strerror(system)) }
        // `SQLITE_IOERR_READ`, `_SHORT_READ`, `_WRITE`, `_FSYNC`, `_DIR_FSYNC`: macros that do not import.
        switch code >> 8 {
        case 1, 2: return "it cannot be read"
        case 3: return "it cannot be written to"
        case 4, 5: return "it cannot make durable what was written"
        default: return "input or output error"
        }
    }

    private static func full(_ path: String) -> OperationalError {
        OperationalError(.unreachable, message: "\(path): the disk is full; nothing was changed")
    }

    static func damaged(_ path: String) -> OperationalError {
        OperationalError(.unreachable, message: "\(path): \(StoreDamage.text)")
    }
}

/// How the error of a store's file tells that the file is damaged. One that is locked, or that may not be
/// read, is as it was.
package enum StoreDamage {
    static let text = "not a database or damaged; restore a backup"

    package static func isNamed(by error: OperationalError) -> Bool { error.message.hasSuffix(text) }
}
