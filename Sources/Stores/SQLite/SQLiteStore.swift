import CountersignAuthority
import CountersignWire

/// The store in one SQLite file: WAL, so that readers and a writer do not wait for each other; `synchronous=FULL`,
/// because `NORMAL` may lose an acknowledged commit at power loss. Safe to share, but for what ``together(_:)`` hands out,
/// which belongs to one thread until it is handed back.
package final class SQLiteStore: Store, @unchecked Sendable {
    private enum Place {
        /// Each call is a transaction of its own.
        case file(SQLiteFile)
        /// Within somebody's transaction: each call is a part of it that fails by itself.
        case transaction(Database)
    }

    private let place: Place

    /// How much of a file is looked at when it is opened.
    package enum Inspection: Sendable {
        /// Every page: a second for a million sessions.
        case everyPage
        /// Whose file it is. For another connection beside one that has looked at every page.
        case header
    }

    /// Names the file; it is opened when it is needed, and made by ``prepare()``.
    package init(path: String, inspecting inspection: Inspection = .everyPage) {
        place = .file(SQLiteFile(path: path, inspecting: inspection))
    }

    init(within database: Database) { place = .transaction(database) }

    package func prepare() throws(Fault) { if case .file(let file) = place { try file.prepare() } }

    package func close() { if case .file(let file) = place { file.close() } }

    package func together(_ changes: [(any Store) throws(Fault) -> Void]) throws(Fault) -> [Fault?] {
        switch place {
        case .transaction(let database): return try SQLiteStore.run(changes, within: database)
        case .file(let file):
            return try file.write { (database) throws(Fault) in try SQLiteStore.run(changes, within: database) }
        }
    }

    private static func run(
        _ changes: [(any Store) throws(Fault) -> Void], within database: Database
    ) throws(Fault) -> [Fault?] {
        let store = SQLiteStore(within: database)
        var faults: [Fault?] = []
        for change in changes {
            do throws(Fault) {
                try database.savepoint { () throws(Fault) in try change(store) }
                faults.append(nil)
            } catch {
                // What ended the transaction has undone the changes before it, too.
                guard database.isInTransaction else { throw error }
                faults.append(error)
            }
        }
        return faults
    }

    /// What `body` reads; `empty` while the file holds nothing yet.
    func read<Result>(
        whenEmpty empty: Result, _ body: (Database) throws(Fault) -> Result
    ) throws(Fault) -> Result {
        switch place {
        case .file(let file): try file.read(whenEmpty: empty, body)
        case .transaction(let database): try body(database)
        }
    }

    /// All of what `body` changes or none, and the revision with it.
    func change<Result>(_ body: (Database) throws(Fault) -> Result) throws(Fault) -> Result {
        try write { (database) throws(Fault) in
            let result = try body(database)
            try database.run("UPDATE revision SET number = number + 1")
            return result
        }
    }

    /// The same for what no release is judged by: the revision stays.
    func write<Result>(_ body: (Database) throws(Fault) -> Result) throws(Fault) -> Result {
        switch place {
        case .file(let file): try file.write(body)
        case .transaction(let database): try database.savepoint { () throws(Fault) in try body(database) }
        }
    }

    package func revision() throws(Fault) -> Int64 {
        try read(whenEmpty: 0) { (database) throws(Fault) in try Rows.revision(database) }
    }

    package func snapshot() throws(Fault) -> StoreSnapshot {
        try read(whenEmpty: StoreSnapshot(revision: 0, apps: [], releases: [])) { (database) throws(Fault) in
            StoreSnapshot(
                revision: try Rows.revision(database), apps: try Rows.apps(database),
                releases: try Rows.releases(database))
        }
    }
}
