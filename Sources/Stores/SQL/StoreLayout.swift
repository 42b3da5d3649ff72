import CountersignAuthority

/// One step of the schema of a store, from one level to the next.
struct SchemaMigration: Sendable, Equatable {
    let name: String
    let kind: SchemaMigrationKind
    let sqlite: String
    /// SQLite's triggers that check or change what is written, one statement each. Those of the file do not
    /// run: each connection has copies (``RowRecorder``).
    var sqliteTriggers: [String] = []
    let postgreSQL: String
}

/// The schema that a build makes and expects: its migrations, and the digests of PostgreSQL's catalogue after
/// them. Each migration runs once, in order, in one transaction with the count of applied migrations. A
/// migration that has been released is never edited.
///
/// A migration may add nullable columns to an authenticated table. It must not change the value of a covered
/// column: it runs without the key, and the row would lose its tag.
package struct StoreLayout: Sendable, Equatable {
    let migrations: [SchemaMigration]
    let digests: [String: String]

    /// This build's.
    package static let current = StoreLayout(
        migrations: [
            SchemaMigration(
                name: "base schema", kind: .contracting, sqlite: SQLiteTables.base,
                sqliteTriggers: SQLiteTables.triggers, postgreSQL: PostgreSQLTables.base)
        ], digests: PostgreSQLSchema.expected)

    /// The layout of a later build, which has one migration more. `digests` are those of the parts of
    /// PostgreSQL's catalogue that the migration changes; nil for one that it removes.
    package func adding(
        _ name: String, kind: SchemaMigrationKind, digests changed: [String: String?] = [:],
        sql: (SchemaDialect) -> String
    ) -> StoreLayout {
        var digests = digests
        for (part, digest) in changed { digests[part] = digest }
        let migration = SchemaMigration(
            name: name, kind: kind, sqlite: sql(.sqlite), postgreSQL: sql(.postgreSQL))
        return StoreLayout(migrations: migrations + [migration], digests: digests)
    }

    package var level: Int64 { Int64(migrations.count) }

    package func digest(of part: String) -> String? { digests[part] }

    /// The migrations that a store of `level` lacks.
    func pending(after level: Int64) -> [SchemaPlan.Step] {
        migrations.enumerated().dropFirst(Int(level)).map { place, migration in
            SchemaPlan.Step(level: Int64(place) + 1, name: migration.name, kind: migration.kind)
        }
    }
}
