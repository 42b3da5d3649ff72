/// The schema of a database: the tables of ``SchemaDialect``, and what PostgreSQL alone has, partly in the
/// files beside this one: the tables that several nodes need, functions and triggers.
enum PostgreSQLTables {
    /// Functions and triggers come after the tables that they name.
    static let base = [
        [types, layout, writing, SchemaDialect.postgreSQL.tables], nodes, logins,
        [auditTriggers, forgottenSession, usageTrigger], nodeTriggers, sealingTriggers, handOverTriggers,
    ].joined().joined(separator: "\n")

    /// The statements are SQLite's, where `max` of two values is a function and no aggregate.
    private static let types = """
        CREATE DOMAIN utf8 AS bytea;

        CREATE FUNCTION max(bigint, bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
            AS 'SELECT greatest($1, $2)';
        """

    /// The level of the schema, and what the level's build says of it, sealed (``StoreLayout``).
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

    /// Deletes the tickets of a session with it, so that none remains for a session that is gone.
    private static let forgottenSession = """
        CREATE FUNCTION forget_upload_tickets() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            DELETE FROM upload_ticket WHERE session = OLD.id;
            RETURN NULL;
        END $$;
        CREATE TRIGGER upload_ticket_of_forgotten_session AFTER DELETE ON session
            FOR EACH ROW EXECUTE FUNCTION forget_upload_tickets();
        """

    /// Keeps the usage: counting it at each request would scan the table.
    private static let usageTrigger = """
        CREATE FUNCTION count_usage() RETURNS trigger LANGUAGE plpgsql AS $$
        DECLARE
            request idempotent_request := coalesce(NEW, OLD);
            owners bytea[] := ARRAY[request.scope::bytea,
                substr(request.scope, 1, position(' '::bytea in request.scope::bytea) - 1)];
            had bigint := 0;
            has bigint := 0;
        BEGIN
            IF request.network IS NOT NULL THEN owners := owners || request.network::bytea; END IF;
            IF TG_OP <> 'INSERT' THEN
                had := coalesce(octet_length(OLD.fields), 0) + coalesce(octet_length(OLD.body), 0);
            END IF;
            IF TG_OP <> 'DELETE' THEN
                has := coalesce(octet_length(NEW.fields), 0) + coalesce(octet_length(NEW.body), 0);
            END IF;
            IF TG_OP = 'INSERT' THEN
                INSERT INTO idempotent_use SELECT owner, 1, has FROM unnest(owners) AS owner
                    ON CONFLICT (owner) DO UPDATE
                    SET keys = idempotent_use.keys + 1, bytes = idempotent_use.bytes + excluded.bytes;
            ELSIF TG_OP = 'UPDATE' THEN
                UPDATE idempotent_use SET bytes = bytes + has - had WHERE owner = ANY (owners);
            ELSE
                UPDATE idempotent_use SET keys = keys - 1, bytes = bytes - had WHERE owner = ANY (owners);
                DELETE FROM idempotent_use
                    WHERE owner IN (request.scope, request.network) AND keys = 0;
            END IF;
            RETURN NULL;
        END $$;
        CREATE TRIGGER idempotent_request_counted AFTER INSERT OR DELETE OR UPDATE OF fields, body
            ON idempotent_request FOR EACH ROW EXECUTE FUNCTION count_usage();
        """
}
