import CountersignAuthority
import CountersignWire

/// Moves a deployment's store from its SQLite file to a PostgreSQL database: each row with its tag, and the
/// digests of the tables, which are the same in both. The keyed requests of the log become rows of the file
/// first, in the transaction of the move, and are moved and compared like all others.
///
/// The database has everything or nothing: all rows are written, compared and authenticated in one
/// transaction. The file is locked meanwhile, and is marked as moved at the end, so that no server goes on
/// with it. A move that was interrupted starts again, or finds that it was complete.
package struct StoreMove {
    /// How far a move has come.
    package enum Stage: Sendable, Equatable {
        case copied(rows: Int64, of: Int64)
        case compared(rows: Int64, of: Int64)
    }

    package struct Outcome: Sendable {
        /// Rows of each table, in the order in which they are moved, without those of the log.
        package let tables: [(name: String, rows: Int64)]
        /// Keyed requests of the log.
        package let requests: Int
        /// Whether the database was empty before.
        package let wasEmpty: Bool

        package var rows: Int64 { tables.reduce(0) { $0 + $1.rows } }
    }

    /// Requests of the log that are read together.
    private static let together = 500

    private let source: SQLiteFile
    private let target: SQLStore
    private let place: PostgreSQLAddress

    /// `rows` authenticates the rows of both. Nil unless the store moves from a file to a database.
    package init?(from source: StorePlace, to target: StorePlace, rows: RowAuthenticator) {
        guard case .sqlite(let path) = source, case .postgreSQL(let address) = target else { return nil }
        self.source = SQLiteFile(path: path, inspecting: .everyPage, rows: rows)
        self.target = SQLStore(address, rows: rows)
        place = address
    }

    /// What a move would do. Changes nothing.
    package func preview(including log: RequestLog?) throws(OperationalError) -> Outcome {
        let tables = try source.read(whenEmpty: []) { (file) throws(OperationalError) in
            try StoreMove.count(in: file)
        }
        return Outcome(tables: tables, requests: log?.count ?? 0, wasEmpty: try target.isEmpty())
    }

    private static func count(in file: Database) throws(OperationalError) -> [(name: String, rows: Int64)] {
        var counts: [(name: String, rows: Int64)] = []
        for name in MovedTable.names {
            counts.append((name, try file.integer("SELECT count(*) FROM \(name)") ?? 0))
        }
        return counts
    }

    /// Moves the rows and the requests of `log`. No server may use the log meanwhile; the caller removes it
    /// afterwards. `now` is in whole Unix seconds.
    package func run(
        now: Int64, including log: RequestLog?, progress: (Stage) -> Void
    ) throws(OperationalError) -> Outcome {
        try target.prepare()
        // Other programs that would change the file wait, and are refused after five seconds.
        return try source.write { (file) throws(OperationalError) in
            try requireAuthentic(file)
            let tables = try StoreMove.count(in: file)
            try log?.forEachRequest(together: StoreMove.together) { (requests) throws(OperationalError) in
                try SQLStore(within: file).adopt(requests)
            }
            let wasEmpty = try move(file, progress: progress)
            try SQLStore(within: file).set(.movedTo, to: Array("\(place.text) \(now)".utf8))
            return Outcome(tables: tables, requests: log?.count ?? 0, wasEmpty: wasEmpty)
        }
    }

    /// Whether the database was empty before.
    private func move(_ file: Database, progress: (Stage) -> Void) throws(OperationalError) -> Bool {
        guard case .server(let server) = target.backing else { return true }
        return try server.use { (database) throws(OperationalError) in
            guard case .postgreSQL(let connection) = database.driver else {
                throw OperationalError(.failed, message: "\(database.path): expected a PostgreSQL database")
            }
            connection.beginMigration()
            do throws(OperationalError) {
                try database.execute(
                    """
                    SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0;
                    UPDATE writing SET number = number + 1
                    """)
                let wasEmpty = try fill(database, by: connection, from: file, progress: progress)
                try requireAuthentic(database)
                try connection.commit()
                database.recorder.reset()
                return wasEmpty
            } catch {
                database.recorder.reset()
                connection.rollBack()
                throw error
            }
        }
    }

    private func fill(
        _ database: Database, by connection: PostgreSQLConnection, from file: Database,
        progress: (Stage) -> Void
    ) throws(OperationalError) -> Bool {
        var tables: [MovedTable] = []
        for name in MovedTable.names {
            tables.append(try MovedTable(name, from: file, to: database))
        }
        let total = try StoreMove.count(in: file).reduce(0) { $0 + $1.rows }
        let isEmpty = try SQLStore(within: database).isEmpty()
        if isEmpty {
            try copy(tables, from: file, to: database, by: connection) {
                progress(.copied(rows: $0, of: total))
            }
        }
        try compare(tables, of: file, with: database) { progress(.compared(rows: $0, of: total)) }
        return isEmpty
    }

    /// The triggers tag rows, count what keyed requests use, and refuse rows under a former key: the rows
    /// have their tags, the counts are rows as well, and each row was accepted once.
    private func copy(
        _ tables: [MovedTable], from file: Database, to database: Database,
        by connection: PostgreSQLConnection,
        progress: (Int64) -> Void
    ) throws(OperationalError) {
        for table in tables {
            try database.execute("ALTER TABLE \(table.name) DISABLE TRIGGER USER; DELETE FROM \(table.name)")
        }
        var copied: Int64 = 0
        for table in tables {
            var rows = try table.page(of: file, after: nil)
            while let last = rows.last {
                try table.insert(rows, by: connection)
                copied += Int64(rows.count)
                progress(copied)
                rows = try table.page(of: file, after: last)
            }
        }
        for table in tables { try database.execute("ALTER TABLE \(table.name) ENABLE TRIGGER USER") }
        for (table, column) in MovedTable.counters {
            try database.execute(
                """
                SELECT setval(pg_get_serial_sequence('\(table)', '\(column)'),
                    coalesce(max(\(column)), 0) + 1, false) FROM \(table)
                """)
        }
    }

    /// Throws unless both have the same rows.
    private func compare(
        _ tables: [MovedTable], of file: Database, with database: Database, progress: (Int64) -> Void
    ) throws(OperationalError) {
        var compared: Int64 = 0
        for table in tables {
            var last: MovedTable.Row?
            while true {
                let rows = try table.page(of: file, after: last)
                guard try table.page(of: database, after: last) == rows else {
                    throw differs(table, in: database)
                }
                guard let end = rows.last else { break }
                last = end
                compared += Int64(rows.count)
                progress(compared)
            }
        }
    }

    private func differs(_ table: MovedTable, in database: Database) -> OperationalError {
        OperationalError(
            .failed,
            message:
                "\(database.path): \(table.name) has other rows than the file: expected an empty database, "
                + "or one that this deployment was moved to before")
    }

    private func requireAuthentic(_ database: Database) throws(OperationalError) {
        guard let found = try database.recorder.examine(AuthenticatedTable.all, in: database) else {
            throw OperationalError(.failed, message: "\(database.path): opened without the rows' key")
        }
        guard let first = found.findings.first else { return }
        throw OperationalError(
            .failed, message: "\(database.path): \(first.text); `countersign audit verify` tells more")
    }
}
