import CountersignAuthority
import CountersignWire

/// The store in one SQLite file: WAL, so that readers and a writer do not wait for each other;
/// `synchronous=FULL`, because `NORMAL` may lose an acknowledged commit at power loss. Safe to share,
/// except the store that ``applyTogether(_:)`` passes to a change, which is valid on one thread until the
/// change returns.
package final class SQLiteStore: Store, @unchecked Sendable {
    enum Backing {
        /// Each call is a transaction of its own.
        case file(SQLiteFile)
        /// Within a caller's transaction: each call is a savepoint that fails by itself.
        case transaction(Database)
    }

    let backing: Backing

    /// How much of a file is checked when it is opened.
    package enum Inspection: Sendable {
        /// Every page: a second for a million sessions.
        case everyPage
        /// Only the header. For another connection beside one that has checked every page.
        case header
    }

    /// Names the file; the first call opens it, and ``prepare()`` creates it. `rows` may be given later, by
    /// ``authenticate(by:)``.
    package init(
        path: String, inspecting inspection: Inspection = .everyPage, rows: RowAuthenticator? = nil
    ) {
        backing = .file(SQLiteFile(path: path, inspecting: inspection, rows: rows))
    }

    init(within database: Database) { backing = .transaction(database) }

    package func prepare() throws(OperationalError) {
        if case .file(let file) = backing { try file.prepare() }
    }

    package func close() { if case .file(let file) = backing { file.close() } }

    package func applyTogether(_ changes: [(any Store) throws(OperationalError) -> Void])
        throws(OperationalError) -> [OperationalError?]
    {
        switch backing {
        case .transaction(let database): return try SQLiteStore.run(changes, within: database)
        case .file(let file):
            return try file.write { (database) throws(OperationalError) in
                try SQLiteStore.run(changes, within: database)
            }
        }
    }

    private static func run(
        _ changes: [(any Store) throws(OperationalError) -> Void], within database: Database
    ) throws(OperationalError) -> [OperationalError?] {
        let store = SQLiteStore(within: database)
        var faults: [OperationalError?] = []
        for change in changes {
            do {
                try database.savepoint { () throws(OperationalError) in try change(store) }
                faults.append(nil)
            } catch {
                // An error that ended the transaction has also undone the changes before it.
                guard database.isInTransaction else { throw error }
                faults.append(error)
            }
        }
        return faults
    }

    /// The result of `body`; `empty` while the file has no layout yet.
    func read<Result>(
        whenEmpty empty: Result, body: (Database) throws(OperationalError) -> Result
    ) throws(OperationalError) -> Result {
        switch backing {
        case .file(let file): try file.read(whenEmpty: empty, body: body)
        case .transaction(let database): try body(database)
        }
    }

    /// Applies all changes of `body` or none, and increments the revision.
    func change<Result>(_ body: (Database) throws(OperationalError) -> Result) throws(OperationalError)
        -> Result
    {
        try write { (database) throws(OperationalError) in
            let result = try body(database)
            try database.run("UPDATE revision SET number = number + 1")
            return result
        }
    }

    /// The same for data that does not affect the gate's release keys: the revision stays.
    func write<Result>(_ body: (Database) throws(OperationalError) -> Result) throws(OperationalError)
        -> Result
    {
        switch backing {
        case .file(let file): try file.write(body)
        case .transaction(let database):
            try database.savepoint { () throws(OperationalError) in try body(database) }
        }
    }

    package func revision() throws(OperationalError) -> Int64 {
        try read(whenEmpty: 0) { (database) throws(OperationalError) in try ReleaseRows.revision(database) }
    }

    package func snapshot() throws(OperationalError) -> StoreSnapshot {
        try read(whenEmpty: StoreSnapshot(revision: 0, apps: [], releases: [])) {
            (database) throws(OperationalError) in
            StoreSnapshot(
                revision: try ReleaseRows.revision(database), apps: try ReleaseRows.apps(database),
                releases: try ReleaseRows.releases(database))
        }
    }
}
