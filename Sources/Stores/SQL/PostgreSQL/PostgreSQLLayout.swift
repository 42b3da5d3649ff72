import CountersignAuthority
import CountersignWire

/// One step of the schema of a PostgreSQL database, from one level to the next.
struct PostgreSQLMigration: Sendable, Equatable {
    let name: String
    let kind: SchemaMigrationKind
    let sql: String
}

/// The schema of a PostgreSQL database that a build makes and expects: its migrations, and the digests of the
/// catalogue after them. Each migration runs once, in order, in one transaction with the count of applied
/// migrations. A migration that has been released is never edited.
///
/// A build goes on with a database of its own level, and with one of a later level if the build that migrated
/// it says so in a record, which is sealed under the deployment's key. Source:
/// docs/decisions/0074-rolling-upgrades.md.
package struct PostgreSQLLayout: Sendable, Equatable {
    let migrations: [PostgreSQLMigration]
    let digests: [String: String]

    /// This build's.
    package static let current = PostgreSQLLayout(
        migrations: [PostgreSQLTables.base], digests: PostgreSQLSchema.expected)

    init(migrations: [PostgreSQLMigration], digests: [String: String]) {
        (self.migrations, self.digests) = (migrations, digests)
    }

    /// The layout of a later build, which has one migration more. `digests` are those of the parts that the
    /// migration changes; nil for one that it removes.
    package func adding(
        _ sql: String, named name: String, kind: SchemaMigrationKind, digests changed: [String: String?]
    ) -> PostgreSQLLayout {
        var digests = digests
        for (part, digest) in changed { digests[part] = digest }
        return PostgreSQLLayout(
            migrations: migrations + [PostgreSQLMigration(name: name, kind: kind, sql: sql)],
            digests: digests)
    }

    package var level: Int64 { Int64(migrations.count) }

    /// The number of migrations that the database has; zero if it has no layout of ours.
    static func version(_ database: Database) throws(OperationalError) -> Int64 {
        guard try database.hasTable("layout") else { return 0 }
        return try database.integer("SELECT number FROM layout") ?? 0
    }

    package func digest(of part: String) -> String? { digests[part] }

    /// The migrations that a database of `level` lacks.
    func pending(after level: Int64) -> [SchemaPlan.Step] {
        migrations.enumerated().dropFirst(Int(max(level, 0))).map { place, migration in
            SchemaPlan.Step(level: Int64(place) + 1, name: migration.name, kind: migration.kind)
        }
    }

    /// What a database with all migrations says of itself to builds of earlier levels.
    var record: SchemaRecord {
        let oldest = pending(after: 0).map(\.oldestLevel).max() ?? level
        return SchemaRecord(level: level, oldestLevel: oldest, digests: digests)
    }

    /// What this build would do with a database.
    func plan(in database: Database) throws(OperationalError) -> SchemaPlan {
        let level = try PostgreSQLLayout.version(database)
        var plan = SchemaPlan(level: level, target: self.level, pending: pending(after: level))
        guard level > 0, !plan.pending.isEmpty else { return plan }
        let nodes = try NodeRows.listing(in: database)
        plan.hindering = nodes.nodes.filter { $0.isLive && $0.level < plan.oldestLevel }
        return plan
    }

    // MARK: Verifying

    /// Throws unless this build can use the schema of a database whose level is `level`, and the catalogue is
    /// as its migrations make it.
    func verify(
        _ level: Int64, in database: Database, by rows: RowAuthenticator?
    ) throws(OperationalError) {
        let expected = try digests(at: level, in: database, by: rows)
        try PostgreSQLSchema.require(expected, in: database)
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
        let record = try PostgreSQLLayout.record(of: level, in: database, by: rows)
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
