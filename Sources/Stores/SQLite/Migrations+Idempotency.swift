extension Migrations {
    /// What is kept of requests that are done once is added up as it comes and goes, by its scope and by the scope's first word: to
    /// count it at each request would read the table through.
    static let m007 = """
        CREATE TABLE idempotent_use (
            owner TEXT PRIMARY KEY,
            keys INTEGER NOT NULL,
            bytes INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;

        INSERT INTO idempotent_use
            SELECT scope, count(*), sum(coalesce(length(fields), 0) + coalesce(length(body), 0))
            FROM idempotent_request GROUP BY scope;
        INSERT INTO idempotent_use
            SELECT substr(owner, 1, instr(owner, ' ') - 1), sum(keys), sum(bytes) FROM idempotent_use WHERE true
            GROUP BY 1;

        CREATE TRIGGER idempotent_request_begun AFTER INSERT ON idempotent_request BEGIN
            INSERT INTO idempotent_use VALUES
                (NEW.scope, 1, coalesce(length(NEW.fields), 0) + coalesce(length(NEW.body), 0)),
                (substr(NEW.scope, 1, instr(NEW.scope, ' ') - 1), 1,
                    coalesce(length(NEW.fields), 0) + coalesce(length(NEW.body), 0))
            ON CONFLICT DO UPDATE SET keys = keys + 1, bytes = bytes + excluded.bytes;
        END;

        CREATE TRIGGER idempotent_request_finished AFTER UPDATE OF fields, body ON idempotent_request BEGIN
            UPDATE idempotent_use SET bytes = bytes
                + coalesce(length(NEW.fields), 0) + coalesce(length(NEW.body), 0)
                - coalesce(length(OLD.fields), 0) - coalesce(length(OLD.body), 0)
            WHERE owner IN (NEW.scope, substr(NEW.scope, 1, instr(NEW.scope, ' ') - 1));
        END;

        CREATE TRIGGER idempotent_request_forgotten AFTER DELETE ON idempotent_request BEGIN
            UPDATE idempotent_use SET keys = keys - 1,
                bytes = bytes - coalesce(length(OLD.fields), 0) - coalesce(length(OLD.body), 0)
            WHERE owner IN (OLD.scope, substr(OLD.scope, 1, instr(OLD.scope, ' ') - 1));
            DELETE FROM idempotent_use WHERE owner = OLD.scope AND keys = 0;
        END;
        """

    /// Who holds a key is added up, too: an account by its scope, as before, and the networks of callers
    /// without a session under a name of their own. Rows from before have no network, and rows that a server
    /// of the former version writes have none. The weight tells which account or network holds most, and the
    /// other index which of its finished requests are the oldest.
    static let m008 = """
        ALTER TABLE idempotent_request ADD COLUMN network TEXT;
        CREATE INDEX idempotent_request_held ON idempotent_request (coalesce(network, scope), begun)
            WHERE status IS NOT NULL;
        CREATE INDEX idempotent_use_weight ON idempotent_use (substr(owner, 1, 7), max(keys * 4096, bytes));

        CREATE TRIGGER idempotent_network_begun AFTER INSERT ON idempotent_request WHEN NEW.network IS NOT NULL BEGIN
            INSERT INTO idempotent_use VALUES
                (NEW.network, 1, coalesce(length(NEW.fields), 0) + coalesce(length(NEW.body), 0))
            ON CONFLICT DO UPDATE SET keys = keys + 1, bytes = bytes + excluded.bytes;
        END;

        CREATE TRIGGER idempotent_network_finished AFTER UPDATE OF fields, body ON idempotent_request
        WHEN NEW.network IS NOT NULL BEGIN
            UPDATE idempotent_use SET bytes = bytes
                + coalesce(length(NEW.fields), 0) + coalesce(length(NEW.body), 0)
                - coalesce(length(OLD.fields), 0) - coalesce(length(OLD.body), 0)
            WHERE owner = NEW.network;
        END;

        CREATE TRIGGER idempotent_network_forgotten AFTER DELETE ON idempotent_request
        WHEN OLD.network IS NOT NULL BEGIN
            UPDATE idempotent_use SET keys = keys - 1,
                bytes = bytes - coalesce(length(OLD.fields), 0) - coalesce(length(OLD.body), 0)
            WHERE owner = OLD.network;
            DELETE FROM idempotent_use WHERE owner = OLD.network AND keys = 0;
        END;
        """
}
