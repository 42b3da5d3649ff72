import CountersignAuthority

/// The tables of a PostgreSQL database, in the schema `countersign`. The files beside this one have them by
/// subject, with a sentence on each.
///
/// They are those of ``SQLiteTables``, and the tables that several nodes need. Texts are `utf8`, a domain
/// over `bytea`: they may contain any byte, and are ordered by their bytes, as in SQLite.
enum PostgreSQLTables {
    /// The schema of a new database. Functions and triggers come after the tables that they name.
    static let base = PostgreSQLMigration(
        name: "base schema", kind: .contracting,
        sql: [
            [types], deployment, nodes, apps, accounts, sessions, keyedRequests, logins, nodeTriggers,
            sealingTriggers, handOverTriggers,
        ].joined().joined(separator: "\n"))

    /// The statements are SQLite's, where `max` of two values is a function and no aggregate.
    private static let types = """
        CREATE DOMAIN utf8 AS bytea;

        CREATE FUNCTION max(bigint, bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
            AS 'SELECT greatest($1, $2)';
        """
}

/// The deployment's own values, its log and its counters.
extension PostgreSQLTables {
    static let deployment = [
        layout, writing, meta, revision, rowDigest, audit, auditTriggers, meter, webhookDelivery,
    ]

    /// The level of the schema, and what the level's build says of it, sealed (``PostgreSQLLayout``).
    private static let layout = """
        CREATE TABLE layout (number bigint NOT NULL, record bytea);
        INSERT INTO layout VALUES (0);
        """

    /// Each transaction that changes something locks the row and counts itself. It reads the level under this
    /// lock, which a migration holds.
    private static let writing = """
        CREATE TABLE writing (number bigint NOT NULL, level bigint NOT NULL DEFAULT 0) WITH (fillfactor = 10);
        INSERT INTO writing VALUES (0);
        """

    /// The values of `MetaName`, one of which each new database has: the first byte of what is sealed.
    private static let meta = """
        CREATE TABLE meta (name utf8 PRIMARY KEY, value bytea NOT NULL, row_tag bytea);
        INSERT INTO meta (name, value) VALUES ('seal-slot', '\\x01');
        """

    /// Counts the changes of what the gate judges by.
    private static let revision = """
        CREATE TABLE revision (number bigint NOT NULL);
        INSERT INTO revision VALUES (0);
        """

    /// The sealed digest of each authenticated table, and the summary of all.
    private static let rowDigest = """
        CREATE TABLE row_digest (name utf8 NOT NULL UNIQUE, value bytea NOT NULL);
        """

    /// The audit log.
    private static let audit = """
        CREATE TABLE audit (number bigint PRIMARY KEY, record utf8 NOT NULL, tag bytea NOT NULL);
        """

    /// They prevent mistakes by other programs; the chain of tags detects what is done on purpose.
    private static let auditTriggers = """
        CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            RAISE EXCEPTION 'the audit log is only added to';
        END $$;
        CREATE TRIGGER audit_is_not_altered BEFORE UPDATE ON audit
            FOR EACH ROW EXECUTE FUNCTION refuse_change();
        CREATE TRIGGER audit_is_not_cut BEFORE DELETE ON audit
            FOR EACH ROW EXECUTE FUNCTION refuse_change();
        CREATE TRIGGER audit_is_not_emptied BEFORE TRUNCATE ON audit
            FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
        """

    /// How many requests of a release had which outcome on a day.
    private static let meter = """
        CREATE TABLE meter (
            day bigint NOT NULL,
            app utf8 NOT NULL,
            key_id utf8 NOT NULL,
            scheme utf8 NOT NULL,
            outcome utf8 NOT NULL,
            count bigint NOT NULL,
            last_seen bigint NOT NULL,
            PRIMARY KEY (day, app, key_id, scheme, outcome)
        );
        """

    /// Events for endpoints of webhooks, until they are delivered. A row counts to an account so that an
    /// erasure finds it.
    private static let webhookDelivery = """
        CREATE TABLE webhook_delivery (
            number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            endpoint utf8 NOT NULL,
            event utf8 NOT NULL,
            account bigint,
            created bigint NOT NULL,
            due bigint NOT NULL,
            attempts bigint NOT NULL,
            given_up bigint,
            failure utf8,
            body bytea NOT NULL
        );
        CREATE INDEX webhook_delivery_due ON webhook_delivery (due) WHERE given_up IS NULL;
        CREATE INDEX webhook_delivery_given_up ON webhook_delivery (given_up) WHERE given_up IS NOT NULL;
        CREATE INDEX webhook_delivery_of_account ON webhook_delivery (account);
        """
}
