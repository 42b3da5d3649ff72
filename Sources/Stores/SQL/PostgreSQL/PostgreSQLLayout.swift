import CountersignAuthority
import CountersignWire

/// The schema of a PostgreSQL database. A build uses a database of its own level, and one of a later level if
/// the migrating build's record allows it. The record is sealed under the deployment's key.
/// Source: docs/decisions/0074-rolling-upgrades.md.
extension StoreLayout {
    /// What a database with all migrations says of itself to builds of earlier levels.
    var record: SchemaRecord {
        let oldest = pending(after: 0).map(\.oldestLevel).max() ?? level
        return SchemaRecord(level: level, oldestLevel: oldest, digests: digests)
    }

    /// What this build would do with a database.
    func plan(in database: Database) throws(OperationalError) -> SchemaPlan {
        let level = try database.schemaLevel()
        var plan = SchemaPlan(level: level, target: self.level, pending: pending(after: level))
        guard level > 0, !plan.pending.isEmpty else { return plan }
        let nodes = try NodeRows.listing(in: database)
        plan.hindering = nodes.nodes.filter { $0.isLive && $0.level < plan.oldestLevel }
        return plan
    }

    // MARK: Verifying

    /// Throws unless this build can use the schema of a database whose level is `level`, and the catalogue is
    /// as its migrations make it.
    func verify(_ level: Int64, in database: Database, by rows: RowAuthenticator?) throws(OperationalError) {
        let expected = try digests(at: level, in: database, by: rows)
        try database.refuse(try PostgreSQLSchema.differences(from: expected, in: database))
    }

    /// The digests of the catalogue of a database whose level is `level`, as the build that made it has them.
    func digests(
        at level: Int64, in database: Database, by rows: RowAuthenticator?
    ) throws(OperationalError) -> [String: String] {
        guard level != self.level else { return digests }
        guard level > self.level else {
            throw OperationalError(
                .unreachable,
                message: "\(database.path): of level \(level) of the schema by now, and this build has "
                    + "level \(self.level): an earlier state was restored; start again")
        }
        let record = try StoreLayout.record(of: level, in: database, by: rows)
        guard record.oldestLevel <= self.level else {
            throw OperationalError(
                .unreachable,
                message: "\(database.path): made by a newer countersign: level \(level) of the schema is for "
                    + "builds of level \(record.oldestLevel) and later, and this one has level "
                    + "\(self.level); upgrade it")
        }
        return record.digests
    }

    /// The authentic record of a database whose level is `level`.
    private static func record(
        of level: Int64, in database: Database, by rows: RowAuthenticator?
    ) throws(OperationalError) -> SchemaRecord {
        guard let rows, let sealed = try sealedRecord(in: database) else {
            throw OperationalError(
                .unreachable,
                message: "\(database.path): made by a newer countersign, without a record of which builds "
                    + "can use level \(level) of the schema; expected this version's or older")
        }
        guard let record = rows.openSchemaRecord(sealed), record.level == level else {
            throw OperationalError(
                .failed,
                message: "\(database.path): the record of level \(level) of the schema is not authentic; "
                    + "restore a backup")
        }
        return record
    }

    static func sealedRecord(in database: Database) throws(OperationalError) -> [UInt8]? {
        try database.rows("SELECT record FROM layout WHERE record IS NOT NULL") { $0.blob(0) }.first
    }
}
