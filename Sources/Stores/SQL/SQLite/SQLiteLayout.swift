import CountersignAuthority
import CountersignWire

/// The schema of a file, whose level is its `user_version`.
extension StoreLayout {
    /// `CSN1`: distinguishes our files from those of other programs (`PRAGMA application_id`).
    static let applicationID: Int64 = 0x4353_4E31

    /// What this build would do with a file of `level`. Builds of earlier levels refuse the file afterwards,
    /// whatever the migration.
    func filePlan(at level: Int64) -> SchemaPlan {
        let pending = pending(after: level).map {
            SchemaPlan.Step(level: $0.level, name: $0.name, kind: .contracting)
        }
        return SchemaPlan(
            level: level, target: self.level, pending: pending, isBackedUp: level > 0 && !pending.isEmpty)
    }

    /// SQLite's triggers as triggers of one connection.
    var connectionTriggers: [String] {
        migrations.flatMap(\.sqliteTriggers).map { "CREATE TEMP \($0.dropFirst("CREATE ".count))" }
    }

    /// Makes what a file of `level` lacks.
    func make(after level: Int64 = 0, in database: Database) throws(OperationalError) {
        for migration in migrations.dropFirst(Int(level)) {
            try database.execute(migration.sqlite)
            for trigger in migration.sqliteTriggers { try database.execute(trigger) }
        }
    }

    /// Brings a file to this level. Throws, and changes nothing, if the file of an earlier level cannot be
    /// copied first.
    func migrate(_ database: Database) throws(OperationalError) -> SchemaOutcome {
        try database.transaction { () throws(OperationalError) in
            // Of two processes that start at once, the second finds the schema made.
            let plan = filePlan(at: try database.schemaLevel())
            var outcome = SchemaOutcome(done: plan.pending)
            if plan.isBackedUp {
                outcome.backup = try SQLiteBackup.make(of: database.path, level: plan.level)
            }
            try make(after: plan.level, in: database)
            try database.refuse(try database.schemaDifferences())
            try database.execute("PRAGMA application_id = \(StoreLayout.applicationID)")
            try database.execute("PRAGMA user_version = \(max(level, plan.level))")
            return outcome
        }
    }
}
