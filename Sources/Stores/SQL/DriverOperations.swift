import CSQLite
import CountersignAuthority
import CountersignWire

/// What the stores need besides statements, and each kind of database does in its own way.
extension Database {
    /// Whether the database's layout is one from which on rows have tags.
    func isMadeWithTags() throws(OperationalError) -> Bool {
        switch driver {
        case .sqlite: try Migrations.version(self) >= Migrations.authenticatedVersion
        case .postgreSQL: try PostgreSQLMigrations.version(self) > 0
        }
    }

    /// How the tables and indices differ from those that the migrations make.
    func schemaDifferences() throws(OperationalError) -> [Schema.Difference] {
        switch driver {
        case .sqlite: try Schema.differences(in: self)
        case .postgreSQL(let connection):
            try PostgreSQLSchema.differences(
                from: connection.layout.digests(
                    at: PostgreSQLMigrations.version(self), in: self, by: recorder.rows), in: self)
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

    /// Lets the records of the audit log be changed until ``protectAudit()``.
    func allowAuditChanges() throws(OperationalError) {
        switch driver {
        case .sqlite: try execute("DROP TRIGGER IF EXISTS audit_is_not_altered")
        case .postgreSQL: try execute("ALTER TABLE audit DISABLE TRIGGER audit_is_not_altered")
        }
    }

    func protectAudit() throws(OperationalError) {
        switch driver {
        case .sqlite: try execute(Migrations.auditIsNotAltered)
        case .postgreSQL: try execute("ALTER TABLE audit ENABLE TRIGGER audit_is_not_altered")
        }
    }
}
