/// Sessions, the uploads that they allow, and requests with an `Idempotency-Key`.
extension SchemaDialect {
    var sessions: String {
        """
        -- The number of the last change of a session.
        CREATE TABLE session_change (number \(integer) NOT NULL)\(counter);
        INSERT INTO session_change VALUES (0);

        -- A session, by its device's key and the roots of its epochs, or by its tokens. The row has the
        -- number of its last change as its key, so that rows changed after a number lie together, in order,
        -- at the end of SQLite's table: a starting server reads a million of them sequentially.
        CREATE TABLE session (
            change \(integer) PRIMARY KEY,
            id \(bytes) NOT NULL UNIQUE,
            account \(integer) NOT NULL REFERENCES account (number),
            app \(text) NOT NULL, platform \(text) NOT NULL,
            device_class \(text) NOT NULL, device_name \(text) NOT NULL,
            created \(integer) NOT NULL, used \(integer) NOT NULL,
            ended_at \(integer), end_reason \(text), ended_by \(text),
            signing_key \(bytes), agreement_key \(bytes),
            epoch \(integer), epoch_began \(integer),
            sealed_root \(bytes), sealed_previous_root \(bytes), attempts \(bytes),
            next_sealed_root \(bytes), next_ephemeral \(bytes), next_attempts \(bytes),
            token_hash \(bytes), token_expires \(integer), previous_token_hash \(bytes),
            login_token_hash \(bytes), token_issued \(integer), previous_login_token_hash \(bytes),
            release \(text), opening \(text) NOT NULL, key_storage \(text),
            refresh_counter \(integer), refresh_digest \(bytes),
            epoch_release \(text), previous_release \(text), next_release \(text),
            row_tag \(bytes),
            CHECK ((ended_at IS NULL) = (end_reason IS NULL)),
            CHECK ((signing_key IS NULL) <> (token_hash IS NULL))
        )\(rows);
        CREATE INDEX session_of_account ON session (account, ended_at, created);
        CREATE INDEX session_idle ON session (app, used) WHERE ended_at IS NULL;
        CREATE INDEX session_age ON session (app, created) WHERE ended_at IS NULL;
        CREATE INDEX session_ended ON session (ended_at) WHERE ended_at IS NOT NULL;

        -- A ticket for one upload in the background. A trigger deletes it with its session.
        CREATE TABLE upload_ticket (
            number \(identity),
            id \(bytes) NOT NULL UNIQUE,
            session \(bytes) NOT NULL, account \(integer) NOT NULL, release \(text) NOT NULL,
            method \(text) NOT NULL, authority \(text) NOT NULL, target \(bytes) NOT NULL,
            content_type \(text), length \(integer) NOT NULL, sha256 \(bytes) NOT NULL,
            created \(integer) NOT NULL, expires \(integer) NOT NULL,
            claimed \(integer), attempts \(integer) NOT NULL DEFAULT 0,
            row_tag \(bytes)
        )\(rows);
        CREATE INDEX upload_ticket_of_account ON upload_ticket (account, claimed, expires);
        CREATE INDEX upload_ticket_of_session ON upload_ticket (session);
        CREATE INDEX upload_ticket_expires ON upload_ticket (expires);
        """
    }

    var keyedRequests: String {
        """
        -- A keyed request, with its answer once it has one. The second index finds the oldest finished
        -- request of an account or network.
        CREATE TABLE idempotent_request (
            \(rowID)scope \(text) NOT NULL, key \(bytes) NOT NULL, digest \(bytes) NOT NULL,
            begun \(integer) NOT NULL,
            status \(integer), fields \(bytes), body \(bytes),
            network \(text),
            UNIQUE (scope, key)
        )\(rows);
        CREATE INDEX idempotent_request_begun ON idempotent_request (begun);
        CREATE INDEX idempotent_request_finished ON idempotent_request (begun) WHERE status IS NOT NULL;
        CREATE INDEX idempotent_request_held ON idempotent_request (coalesce(network, scope), begun)
            WHERE status IS NOT NULL;

        -- The usage of keyed requests by scope, by kind (the scope's first word) and by network, which
        -- triggers keep: counting it at each request would scan the table. The index finds the account or
        -- network with the most usage.
        CREATE TABLE idempotent_use (
            owner \(text) PRIMARY KEY,
            keys \(integer) NOT NULL,
            bytes \(integer) NOT NULL
        )\(rowsByKey);
        CREATE INDEX idempotent_use_weight ON idempotent_use (substr(owner, 1, 7), max(keys * 4096, bytes));
        """
    }
}
