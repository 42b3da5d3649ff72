import CountersignAuthority
import CountersignWire
import Glibc

/// A database file and one connection to it, opened when it is first needed. Safe to share: the connection is used under the
/// lock.
final class SQLiteFile: @unchecked Sendable {
    private let path: String
    private let inspection: SQLiteStore.Inspection
    /// Guards `database`.
    private let lock = ReadWriteLock()
    private var database: Database?
    /// Whether the file is known to hold something, which it then does for good.
    private var isMade = false

    init(path: String, inspecting inspection: SQLiteStore.Inspection) {
        self.path = path
        self.inspection = inspection
    }

    func prepare() throws(Fault) {
        try lock.write { () throws(Fault) in
            if try existing() == nil { try SQLiteFile.makeEmpty(path) }
            guard let database = try existing() else { throw SQLiteFault.damaged(path) }
            database.mayCheckpoint()
            guard try Migrations.version(database) != Int64(Migrations.steps.count) else { return }
            try Migrations.run(on: database)
        }
    }

    func close() {
        lock.write {
            database = nil
            isMade = false
        }
    }

    /// What `body` reads, as of one moment; `empty` while the file holds nothing yet.
    func read<Result>(
        whenEmpty empty: Result, _ body: (Database) throws(Fault) -> Result
    ) throws(Fault) -> Result {
        try lock.write { () throws(Fault) in
            guard let database = try existing() else { return empty }
            // Within the one transaction: each takes and gives back locks on the file, by calls into the kernel.
            return try database.reading { () throws(Fault) in
                if !isMade { isMade = try Migrations.version(database) > 0 }
                return isMade ? try body(database) : empty
            }
        }
    }

    /// All of what `body` changes or none; durable once this returns.
    func write<Result>(_ body: (Database) throws(Fault) -> Result) throws(Fault) -> Result {
        try lock.write { () throws(Fault) in
            guard let database = try existing() else { throw Fault(.unreachable, "\(path): no database there") }
            return try database.transaction { () throws(Fault) in try body(database) }
        }
    }

    /// Of mode 0600; SQLite gives its journal the same.
    private static func makeEmpty(_ path: String) throws(Fault) {
        let file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        if file < 0, errno == EEXIST { return }
        guard file >= 0 else { throw SystemFault(errno, "\(path): cannot make the database").fault(.unreachable) }
        Glibc.close(file)
    }

    /// The connection; nil where the file is not there, or was never written to.
    private func existing() throws(Fault) -> Database? {
        if let database { return database }
        guard access(path, F_OK) == 0 else {
            if errno == ENOENT { return nil }
            throw SystemFault(errno, "\(path): cannot open the database").fault(.unreachable)
        }
        let opened = try Database(path: path)
        guard opened.hasItsMagic else { throw SQLiteFault.damaged(path) }
        try check(opened)
        try opened.execute("PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL; PRAGMA secure_delete = ON")
        database = opened
        return opened
    }

    private func check(_ database: Database) throws(Fault) {
        let application = try database.integer("PRAGMA application_id")
        let tables = try database.integer("SELECT count(*) FROM sqlite_schema") ?? 0
        guard application == Migrations.applicationID || tables == 0 else {
            throw Fault(.unreachable, "\(database.path): a database of another program; expected one of countersign's")
        }
        guard try Migrations.version(database) <= Migrations.steps.count else {
            throw Fault(.unreachable, "\(database.path): made by a newer countersign; expected this version's or older")
        }
        if inspection == .everyPage {
            let verdict = try database.rows("PRAGMA quick_check(1)") { $0.text(0) }
            guard verdict == ["ok"] else { throw SQLiteFault.damaged(database.path) }
        }
        // A property of the file: only the first time does this write.
        _ = try database.rows("PRAGMA journal_mode = WAL") { $0.text(0) }
    }
}
