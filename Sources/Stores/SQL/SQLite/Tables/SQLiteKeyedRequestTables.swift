/// Requests with an `Idempotency-Key`, and what they use.
extension SQLiteTables {
    static let keyedRequests = [idempotentRequest, idempotentUse]
    static let keyedRequestTriggers = [
        requestBegun, requestFinished, requestForgotten, networkBegun, networkFinished, networkForgotten,
    ]

    /// A keyed request, with its answer once it has one. The second index finds the oldest finished request
    /// of an account or network.
    private static let idempotentRequest = """
        CREATE TABLE idempotent_request (
            scope TEXT NOT NULL,
            key BLOB NOT NULL,
            digest BLOB NOT NULL,
            begun INTEGER NOT NULL,
            status INTEGER,
            fields BLOB,
            body BLOB,
            network TEXT,
            UNIQUE (scope, key)
        ) STRICT;
        CREATE INDEX idempotent_request_begun ON idempotent_request (begun);
        CREATE INDEX idempotent_request_held ON idempotent_request (coalesce(network, scope), begun)
            WHERE status IS NOT NULL;
        """

    /// The usage of keyed requests by scope, by kind (the scope's first word) and by network: counting it at
    /// each request would scan the table. The index finds the account or network with the most usage.
    private static let idempotentUse = """
        CREATE TABLE idempotent_use (
            owner TEXT PRIMARY KEY,
            keys INTEGER NOT NULL,
            bytes INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX idempotent_use_weight ON idempotent_use (substr(owner, 1, 7), max(keys * 4096, bytes));
        """

    private static let requestBegun = """
        CREATE TRIGGER idempotent_request_begun AFTER INSERT ON idempotent_request BEGIN
            INSERT INTO idempotent_use VALUES
                (NEW.scope, 1, coalesce(length(NEW.fields), 0) + coalesce(length(NEW.body), 0)),
                (substr(NEW.scope, 1, instr(NEW.scope, ' ') - 1), 1,
                    coalesce(length(NEW.fields), 0) + coalesce(length(NEW.body), 0))
            ON CONFLICT DO UPDATE SET keys = keys + 1, bytes = bytes + excluded.bytes;
        END
        """

    private static let requestFinished = """
        CREATE TRIGGER idempotent_request_finished AFTER UPDATE OF fields, body ON idempotent_request BEGIN
            UPDATE idempotent_use SET bytes = bytes
                + coalesce(length(NEW.fields), 0) + coalesce(length(NEW.body), 0)
                - coalesce(length(OLD.fields), 0) - coalesce(length(OLD.body), 0)
            WHERE owner IN (NEW.scope, substr(NEW.scope, 1, instr(NEW.scope, ' ') - 1));
        END
        """

    private static let requestForgotten = """
        CREATE TRIGGER idempotent_request_forgotten AFTER DELETE ON idempotent_request BEGIN
            UPDATE idempotent_use SET keys = keys - 1,
                bytes = bytes - coalesce(length(OLD.fields), 0) - coalesce(length(OLD.body), 0)
            WHERE owner IN (OLD.scope, substr(OLD.scope, 1, instr(OLD.scope, ' ') - 1));
            DELETE FROM idempotent_use WHERE owner = OLD.scope AND keys = 0;
        END
        """

    private static let networkBegun = """
        CREATE TRIGGER idempotent_network_begun AFTER INSERT ON idempotent_request \
        WHEN NEW.network IS NOT NULL BEGIN
            INSERT INTO idempotent_use VALUES
                (NEW.network, 1, coalesce(length(NEW.fields), 0) + coalesce(length(NEW.body), 0))
            ON CONFLICT DO UPDATE SET keys = keys + 1, bytes = bytes + excluded.bytes;
        END
        """

    private static let networkFinished = """
        CREATE TRIGGER idempotent_network_finished AFTER UPDATE OF fields, body ON idempotent_request
        WHEN NEW.network IS NOT NULL BEGIN
            UPDATE idempotent_use SET bytes = bytes
                + coalesce(length(NEW.fields), 0) + coalesce(length(NEW.body), 0)
                - coalesce(length(OLD.fields), 0) - coalesce(length(OLD.body), 0)
            WHERE owner = NEW.network;
        END
        """

    private static let networkForgotten = """
        CREATE TRIGGER idempotent_network_forgotten AFTER DELETE ON idempotent_request
        WHEN OLD.network IS NOT NULL BEGIN
            UPDATE idempotent_use SET keys = keys - 1,
                bytes = bytes - coalesce(length(OLD.fields), 0) - coalesce(length(OLD.body), 0)
            WHERE owner = OLD.network;
            DELETE FROM idempotent_use WHERE owner = OLD.network AND keys = 0;
        END
        """
}
