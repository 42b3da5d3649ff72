extension Migrations {
    /// Accounts, the devices they are known on, their sessions, and requests that are done once.
    ///
    /// A session's row is found by the number of its last change, so that what changed after a number lies together, in order,
    /// at the end of the table: a server that starts reads a million of them front to back.
    static let m004 = """
        CREATE TABLE account (
            number INTEGER PRIMARY KEY,
            app TEXT NOT NULL REFERENCES app (name),
            name TEXT NOT NULL,
            user_id INTEGER,
            created INTEGER NOT NULL,
            state TEXT NOT NULL,
            credential BLOB,
            sealed_record BLOB,
            rung TEXT,
            sealed_legacy BLOB,
            reset_hash BLOB,
            reset_until INTEGER,
            UNIQUE (app, name),
            CHECK ((credential IS NULL) = (sealed_record IS NULL)),
            CHECK ((rung IS NULL) = (sealed_legacy IS NULL)),
            CHECK (credential IS NULL OR rung IS NULL),
            CHECK ((reset_hash IS NULL) = (reset_until IS NULL))
        ) STRICT;
        CREATE INDEX account_of_app ON account (app);
        CREATE UNIQUE INDEX account_user_id ON account (app, user_id) WHERE user_id IS NOT NULL;

        CREATE TABLE known_device (
            account INTEGER NOT NULL REFERENCES account (number),
            id BLOB NOT NULL,
            signing_key BLOB NOT NULL,
            last_seen INTEGER NOT NULL,
            PRIMARY KEY (account, id)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE session_change (
            number INTEGER NOT NULL
        ) STRICT;
        INSERT INTO session_change VALUES (0);

        CREATE TABLE session (
            change INTEGER PRIMARY KEY,
            id BLOB NOT NULL UNIQUE,
            account INTEGER NOT NULL REFERENCES account (number),
            app TEXT NOT NULL,
            platform TEXT NOT NULL,
            device_class TEXT NOT NULL,
            device_name TEXT NOT NULL,
            created INTEGER NOT NULL,
            used INTEGER NOT NULL,
            ended_at INTEGER,
            end_reason TEXT,
            ended_by TEXT,
            signing_key BLOB,
            agreement_key BLOB,
            epoch INTEGER,
            epoch_began INTEGER,
            sealed_root BLOB,
            sealed_previous_root BLOB,
            attempts BLOB,
            next_sealed_root BLOB,
            next_ephemeral BLOB,
            next_attempts BLOB,
            token_hash BLOB,
            token_expires INTEGER,
            previous_token_hash BLOB,
            login_token_hash BLOB,
            token_issued INTEGER,
            previous_login_token_hash BLOB,
            CHECK ((ended_at IS NULL) = (end_reason IS NULL)),
            CHECK ((signing_key IS NULL) <> (token_hash IS NULL))
        ) STRICT;
        CREATE INDEX session_of_account ON session (account, ended_at);
        CREATE INDEX session_idle ON session (app, used) WHERE ended_at IS NULL;
        CREATE INDEX session_ended ON session (ended_at) WHERE ended_at IS NOT NULL;

        CREATE TABLE idempotent_request (
            scope TEXT NOT NULL,
            key BLOB NOT NULL,
            digest BLOB NOT NULL,
            begun INTEGER NOT NULL,
            status INTEGER,
            fields BLOB,
            body BLOB,
            UNIQUE (scope, key)
        ) STRICT;
        CREATE INDEX idempotent_request_begun ON idempotent_request (begun);
        """
}
