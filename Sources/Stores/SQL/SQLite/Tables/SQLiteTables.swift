/// The tables of a file. The files beside this one have them by subject, with a sentence on each.
///
/// ``PostgreSQLTables`` has the same tables and columns.
enum SQLiteTables {
    /// The schema of a new file.
    static let base = SQLiteMigration(
        name: "base schema",
        sql: (deployment + apps + accounts + sessions + keyedRequests).joined(separator: "\n"),
        triggers: sessionTriggers + keyedRequestTriggers + sealingTriggers)
}

/// The deployment's own values, its log and its counters.
extension SQLiteTables {
    static let deployment = [meta, revision, rowDigest, audit, meter, webhookDelivery]

    /// The values of `MetaName`, one of which each new file has: the first byte of what is sealed.
    private static let meta = """
        CREATE TABLE meta (
            name TEXT PRIMARY KEY,
            value BLOB NOT NULL,
            row_tag BLOB
        ) STRICT, WITHOUT ROWID;
        INSERT INTO meta (name, value) VALUES ('seal-slot', x'01');
        """

    /// Counts the changes of what the gate judges by, so that a server notices those of other processes.
    private static let revision = """
        CREATE TABLE revision (
            number INTEGER NOT NULL
        ) STRICT;
        INSERT INTO revision VALUES (0);
        """

    /// The sealed digest of each authenticated table, and the summary of all.
    private static let rowDigest = """
        CREATE TABLE row_digest (
            name TEXT NOT NULL UNIQUE,
            value BLOB NOT NULL
        ) STRICT;
        """

    /// The audit log. The triggers prevent accidental changes; the chain of tags detects deliberate ones.
    private static let audit = """
        CREATE TABLE audit (
            number INTEGER PRIMARY KEY,
            record TEXT NOT NULL,
            tag BLOB NOT NULL
        ) STRICT;
        CREATE TRIGGER audit_is_not_altered BEFORE UPDATE ON audit
        BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END;
        CREATE TRIGGER audit_is_not_cut BEFORE DELETE ON audit
        BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END;
        """

    /// How many requests of a release had which outcome on a day.
    private static let meter = """
        CREATE TABLE meter (
            day INTEGER NOT NULL,
            app TEXT NOT NULL,
            key_id TEXT NOT NULL,
            scheme TEXT NOT NULL,
            outcome TEXT NOT NULL,
            count INTEGER NOT NULL,
            last_seen INTEGER NOT NULL,
            PRIMARY KEY (day, app, key_id, scheme, outcome)
        ) STRICT, WITHOUT ROWID;
        """

    /// Events for endpoints of webhooks, until they are delivered. A row counts to an account so that an
    /// erasure finds it.
    private static let webhookDelivery = """
        CREATE TABLE webhook_delivery (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            endpoint TEXT NOT NULL,
            event TEXT NOT NULL,
            account INTEGER,
            created INTEGER NOT NULL,
            due INTEGER NOT NULL,
            attempts INTEGER NOT NULL,
            given_up INTEGER,
            failure TEXT,
            body BLOB NOT NULL
        ) STRICT;
        CREATE INDEX webhook_delivery_due ON webhook_delivery (due) WHERE given_up IS NULL;
        CREATE INDEX webhook_delivery_given_up ON webhook_delivery (given_up) WHERE given_up IS NOT NULL;
        CREATE INDEX webhook_delivery_of_account ON webhook_delivery (account);
        """
}
