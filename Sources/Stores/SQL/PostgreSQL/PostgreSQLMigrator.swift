import CountersignAuthority
import CountersignWire
import Glibc

/// Brings a database to the level of a layout, under nodes that serve: a migration holds the writing lock for
/// as long as its statements take, and does not wait longer than ``lockMilliseconds`` for a table, so that
/// readers behind it do not wait longer, either.
struct PostgreSQLMigrator {
    let layout: StoreLayout
    /// Seals the record of the level; nil while a new deployment has no key.
    let rows: RowAuthenticator?
    let consent: MigrationConsent

    private static let lockMilliseconds = 500
    /// Milliseconds for each statement while nodes are live: a change waits up to five seconds.
    private static let statementMilliseconds = 2_000
    private static let mostAttempts = 40

    func run(on database: Database, by connection: PostgreSQLConnection) throws(OperationalError)
        -> SchemaOutcome
    {
        try database.execute("CREATE SCHEMA IF NOT EXISTS countersign")
        var attempt = 1
        while true {
            connection.beginMigration()
            do {
                let outcome = try migrate(database)
                try connection.commit()
                return outcome
            } catch {
                connection.rollBack()
                guard connection.wasContended, attempt < PostgreSQLMigrator.mostAttempts else { throw error }
            }
            attempt += 1
            // Different for processes that start at once.
            usleep(UInt32.random(in: 50_000...250_000))
        }
    }

    private func migrate(_ database: Database) throws(OperationalError) -> SchemaOutcome {
        // Of two processes that start at once, the second finds the schema made.
        try database.execute(
            """
            SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = \(PostgreSQLMigrator.lockMilliseconds);
            SELECT pg_advisory_xact_lock(4850253)
            """)
        let level = try database.schemaLevel()
        guard level < layout.level else { return SchemaOutcome() }
        let pending = layout.pending(after: level)
        if level > 0 { try begin(at: level, in: database) }
        for step in layout.migrations.dropFirst(Int(level)) { try database.execute(step.postgreSQL) }
        try database.refuse(try PostgreSQLSchema.differences(from: layout.digests, in: database))
        // A record of an earlier level would not be of this one.
        try database.run(
            "UPDATE layout SET number = ?, record = ?", binding: .integer(layout.level),
            .optional(rows?.seal(layout.record)))
        try database.run("UPDATE writing SET level = ?", binding: .integer(layout.level))
        // Nodes are told, and verify the schema.
        try database.execute("UPDATE generation SET number = number + 1")
        return SchemaOutcome(done: pending)
    }

    /// Keeps others from writing, and throws unless the pending migrations may run now.
    private func begin(at level: Int64, in database: Database) throws(OperationalError) {
        try database.execute("UPDATE writing SET number = number + 1")
        let isContracting = layout.pending(after: level).contains { $0.kind == .contracting }
        guard !isContracting || consent == .all else {
            throw OperationalError(
                .failed,
                message: "\(database.path): a migration from level \(level) to \(layout.level) of the schema "
                    + "is contracting: builds of earlier levels cannot go on. Stop their nodes, and run "
                    + "`countersign migrate`")
        }
        // No node enters between this and the commit. Under an expanding migration all renew their leases.
        if isContracting { try database.execute("LOCK TABLE node IN SHARE MODE") }
        let plan = try layout.plan(in: database)
        guard plan.hindering.isEmpty else {
            let names = plan.hindering.map { "\($0.name) (level \($0.level))" }.joined(separator: ", ")
            throw OperationalError(
                .failed,
                message: "\(database.path): level \(layout.level) of the schema is for builds of level "
                    + "\(plan.oldestLevel) and later, and these nodes are live: \(names). Upgrade or stop "
                    + "them first; nothing was changed")
        }
        guard try NodeRows.listing(in: database).nodes.contains(where: \.isLive) else { return }
        try database.execute(
            "SET LOCAL statement_timeout = \(PostgreSQLMigrator.statementMilliseconds)")
    }
}
