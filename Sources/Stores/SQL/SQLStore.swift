import CountersignAuthority
import CountersignWire

/// The store in a database: one SQLite file (WAL, so that readers and a writer do not wait for each other;
/// `synchronous=FULL`, because `NORMAL` may lose an acknowledged commit at power loss), or a PostgreSQL
/// database. Safe to share, except the store that ``applyTogether(_:)`` passes to a change, which is valid on
/// one thread until the change returns.
package final class SQLStore: Store, @unchecked Sendable {
    enum Backing {
        /// Each call is a transaction of its own.
        case file(SQLiteFile)
        case server(PostgreSQLServer)
        /// Within a caller's transaction: each call is a savepoint that fails by itself.
        case transaction(Database)
    }

    let backing: Backing
    private let acknowledgement: ChangeAcknowledgement

    /// Names the file; the first call opens it, and ``prepare()`` creates it. `rows` may be given later, by
    /// ``authenticate(by:)``.
    package init(
        path: String, inspecting inspection: StoreInspection = .everyPage, rows: RowAuthenticator? = nil,
        layout: StoreLayout = .current, interruptedBy drill: OutageDrill? = nil
    ) {
        backing = .file(
            SQLiteFile(path: path, inspecting: inspection, rows: rows, layout: layout, interruptedBy: drill))
        acknowledgement = .durable
    }

    /// Names a PostgreSQL database; the first call connects, and ``prepare()`` makes the layout.
    init(
        _ address: PostgreSQLAddress, rows: RowAuthenticator?,
        acknowledging acknowledgement: ChangeAcknowledgement = .durable, layout: StoreLayout = .current,
        limitingStatementsTo milliseconds: Int = 5_000, interruptedBy drill: OutageDrill? = nil
    ) {
        backing = .server(
            PostgreSQLServer(
                address, rows: rows, layout: layout, limitingStatementsTo: milliseconds, interruptedBy: drill)
        )
        self.acknowledgement = acknowledgement
    }

    init(within database: Database) {
        backing = .transaction(database)
        acknowledgement = .durable
    }

    package func prepare() throws(OperationalError) {
        _ = try prepare(consenting: .expanding, verifyingBy: nil)
    }

    package func prepare(
        consenting consent: MigrationConsent, verifyingBy rows: RowAuthenticator?
    ) throws(OperationalError) -> SchemaOutcome {
        switch backing {
        // Builds of earlier levels open no file of this one, whatever the migration.
        case .file(let file): try file.prepare()
        case .server(let server): try server.prepare(consenting: consent, verifyingBy: rows)
        case .transaction: SchemaOutcome()
        }
    }

    package func schemaPlan() throws(OperationalError) -> SchemaPlan {
        switch backing {
        case .file(let file): try file.schemaPlan()
        case .server(let server): try server.schemaPlan()
        case .transaction: SchemaPlan(level: 0, target: 0, pending: [])
        }
    }

    package func verifySchema() throws(OperationalError) {
        if case .server(let server) = backing { try server.verifySchema() }
    }

    package func close() {
        switch backing {
        case .file(let file): file.close()
        case .server(let server): server.close()
        case .transaction: break
        }
    }

    package func applyTogether(_ changes: [(any Store) throws(OperationalError) -> Void])
        throws(OperationalError) -> [OperationalError?]
    {
        switch backing {
        case .transaction(let database): return try SQLStore.run(changes, within: database)
        case .file(let file):
            return try file.write { (database) throws(OperationalError) in
                try SQLStore.run(changes, within: database)
            }
        case .server(let server):
            let faults = try server.write { (database) throws(OperationalError) in
                try SQLStore.run(changes, within: database)
            }
            try acknowledge()
            return faults
        }
    }

    private static func run(
        _ changes: [(any Store) throws(OperationalError) -> Void], within database: Database
    ) throws(OperationalError) -> [OperationalError?] {
        let store = SQLStore(within: database)
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
        case .server(let server): try server.read(whenEmpty: empty, body: body)
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
        case .file(let file): return try file.write(body)
        case .server(let server):
            let result = try server.write(body)
            try acknowledge()
            return result
        case .transaction(let database):
            return try database.savepoint { () throws(OperationalError) in try body(database) }
        }
    }

    private func acknowledge() throws(OperationalError) {
        if acknowledgement == .followed { try awaitNodes() }
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
