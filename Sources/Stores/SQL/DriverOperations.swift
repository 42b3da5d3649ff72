import CSQLite
import CountersignAuthority
import CountersignWire

/// What the stores need besides statements, and each kind of database does in its own way.
extension Database {
    /// Whether the database has a layout of ours.
    func isMade() throws(OperationalError) -> Bool {
        switch driver {
        case .sqlite: try SQLiteLayout.version(self) > 0
        case .postgreSQL: try PostgreSQLLayout.version(self) > 0
        }
    }

    /// How the tables and indices differ from those that the migrations make.
    func schemaDifferences() throws(OperationalError) -> [SchemaDifference] {
        switch driver {
        case .sqlite(let connection): try SQLiteSchema.differences(from: connection.layout, in: self)
        case .postgreSQL(let connection):
            try PostgreSQLSchema.differences(
                from: connection.layout.digests(
                    at: PostgreSQLLayout.version(self), in: self, by: recorder.rows), in: self)
        }
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
