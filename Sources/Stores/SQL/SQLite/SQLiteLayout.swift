import CountersignAuthority
import CountersignWire

/// One step of the schema of a file, from one level to the next.
struct SQLiteMigration: Sendable, Equatable {
    let name: String
    /// Tables, indices, first rows, and the triggers that only keep other programs from mistakes.
    let sql: String
    /// The triggers that check or change what is written, one statement each. Those of the file do not run:
    /// each connection has copies (``RowRecorder``).
    let triggers: [String]
}

/// The schema of a file that a build makes and expects: a list of migrations. Each runs once, in order, in
/// one transaction with the count of applied migrations (`user_version`). A migration that has been released
/// is never edited.
///
/// A migration may add nullable columns to an authenticated table. It must not change the value of a covered
/// column: it runs without the key, and the row would lose its tag.
package struct SQLiteLayout: Sendable, Equatable {
    /// `CSN1`: distinguishes our files from those of other programs (`PRAGMA application_id`).
    static let applicationID: Int64 = 0x4353_4E31

    let migrations: [SQLiteMigration]

    /// This build's.
    package static let current = SQLiteLayout(migrations: [SQLiteTables.base])

    /// The layout of a later build, which has one migration more.
    package func adding(_ sql: String, named name: String) -> SQLiteLayout {
        SQLiteLayout(migrations: migrations + [SQLiteMigration(name: name, sql: sql, triggers: [])])
    }

    package var level: Int64 { Int64(migrations.count) }

    /// The number of migrations that a file has; zero if it has no layout.
    static func version(_ database: Database) throws(OperationalError) -> Int64 {
        try database.integer("PRAGMA user_version") ?? 0
    }

    /// The migrations that a file of `level` lacks. Builds without them refuse the file.
    func pending(after level: Int64) -> [SchemaPlan.Step] {
        migrations.enumerated().dropFirst(Int(level)).map { place, migration in
            SchemaPlan.Step(level: Int64(place) + 1, name: migration.name, kind: .contracting)
        }
    }

    /// The triggers as triggers of one connection.
    var connectionTriggers: [String] {
        migrations.flatMap(\.triggers).map { "CREATE TEMP \($0.dropFirst("CREATE ".count))" }
    }

    /// Makes everything of the layout in an empty database.
    func make(in database: Database) throws(OperationalError) {
        for migration in migrations { try apply(migration, to: database) }
    }

    /// Brings a file to this level. Throws, and changes nothing, if the file of an earlier level cannot be
    /// copied first.
    func migrate(_ database: Database) throws(OperationalError) -> SchemaOutcome {
        try database.transaction { () throws(OperationalError) in
            // Of two processes that start at once, the second finds the schema made.
            let done = try SQLiteLayout.version(database)
            var outcome = SchemaOutcome(done: pending(after: done))
            if done > 0, !outcome.done.isEmpty {
                outcome.backup = try SQLiteBackup.make(of: database.path, level: done)
            }
            for migration in migrations.dropFirst(Int(done)) { try apply(migration, to: database) }
            try SQLiteSchema.require(self, in: database)
            try database.execute("PRAGMA application_id = \(SQLiteLayout.applicationID)")
            try database.execute("PRAGMA user_version = \(max(level, done))")
            return outcome
        }
    }

    private func apply(_ migration: SQLiteMigration, to database: Database) throws(OperationalError) {
        try database.execute(migration.sql)
        for trigger in migration.triggers { try database.execute(trigger) }
    }
}
