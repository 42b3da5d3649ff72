/// Requests with an `Idempotency-Key`, and what they use.
extension PostgreSQLTables {
    static let keyedRequests = [idempotentRequest, idempotentUse, usageTrigger]

    /// A keyed request, with its answer once it has one. The second index finds the oldest finished request
    /// of an account or network.
    private static let idempotentRequest = """
        CREATE TABLE idempotent_request (
            rowid bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            scope utf8 NOT NULL,
            network utf8,
            key bytea NOT NULL,
            digest bytea NOT NULL,
            begun bigint NOT NULL,
            status bigint,
            fields bytea,
            body bytea,
            UNIQUE (scope, key)
        );
        CREATE INDEX idempotent_request_begun ON idempotent_request (begun);
        CREATE INDEX idempotent_request_held ON idempotent_request (coalesce(network, scope), begun)
            WHERE status IS NOT NULL;
        """

    /// The usage of keyed requests by scope, by kind (the scope's first word) and by network.
    private static let idempotentUse = """
        CREATE TABLE idempotent_use (owner utf8 PRIMARY KEY, keys bigint NOT NULL, bytes bigint NOT NULL);
        CREATE INDEX idempotent_use_weight ON idempotent_use (substr(owner, 1, 7), max(keys * 4096, bytes));
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
