import CSQLite
import CountersignAuthority
import CountersignWire

/// What the stores need besides statements, and each kind of database does in its own way.
extension Database {
    /// The number of migrations that the database has; zero if it has no layout of ours.
    func schemaLevel() throws(OperationalError) -> Int64 {
        switch driver {
        case .sqlite: return max(0, try integer("PRAGMA user_version") ?? 0)
        case .postgreSQL:
            guard try hasTable("layout") else { return 0 }
            return max(0, try integer("SELECT number FROM layout") ?? 0)
        }
    }

    /// How the tables and indices differ from those that the migrations make.
    func schemaDifferences() throws(OperationalError) -> [SchemaDifference] {
        switch driver {
        case .sqlite(let connection): try SQLiteSchema.differences(from: connection.layout, in: self)
        case .postgreSQL(let connection):
            try PostgreSQLSchema.differences(
                from: connection.layout.digests(at: schemaLevel(), in: self, by: recorder.rows), in: self)
        }
    }

    /// Throws the first of the differences.
    func refuse(_ differences: [SchemaDifference]) throws(OperationalError) {
        guard let first = differences.first else { return }
        throw OperationalError(
            .failed, message: "\(path): \(first.table): \(first.text). Undo it, or restore a backup")
    }

    /// Pages that were written to a file without SQLite do not replace those in memory; afterwards they are
    /// read again.
    func forgetPages() {
        if case .sqlite(let connection) = driver { sqlite3_db_release_memory(connection.handle) }
    }

    /// Builds the table's indices anew. Throws if two rows have one unique key.
    func buildIndices(of table: AuthenticatedTable) throws(OperationalError) {
        switch driver {
        case .sqlite: try execute("REINDEX main.\(table.name)")
        case .postgreSQL: try execute("REINDEX TABLE countersign.\(table.name)")
        }
    }
}

/// How the schema of a store differs from the one that its layout makes.
struct SchemaDifference: Equatable {
    let table: String
    let text: String
}
