/// Sessions, and the uploads that they allow.
extension SQLiteTables {
    static let sessions = [sessionChange, session, uploadTicket]
    static let sessionTriggers = [forgottenSession]

    /// The number of the last change of a session.
    private static let sessionChange = """
        CREATE TABLE session_change (
            number INTEGER NOT NULL
        ) STRICT;
        INSERT INTO session_change VALUES (0);
        """

    /// A session, by its device's key and the roots of its epochs, or by its tokens.
    ///
    /// The row has the number of its last change as its key, so that rows changed after a number lie
    /// together, in order, at the end of the table: a starting server reads a million of them sequentially.
    private static let session = """
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
            release TEXT,
            opening TEXT NOT NULL,
            key_storage TEXT,
            refresh_counter INTEGER,
            refresh_digest BLOB,
            epoch_release TEXT,
            previous_release TEXT,
            next_release TEXT,
            row_tag BLOB,
            CHECK ((ended_at IS NULL) = (end_reason IS NULL)),
            CHECK ((signing_key IS NULL) <> (token_hash IS NULL))
        ) STRICT;
        CREATE INDEX session_of_account ON session (account, ended_at, created);
        CREATE INDEX session_idle ON session (app, used) WHERE ended_at IS NULL;
        CREATE INDEX session_age ON session (app, created) WHERE ended_at IS NULL;
        CREATE INDEX session_ended ON session (ended_at) WHERE ended_at IS NOT NULL;
        """

    /// A ticket for one upload in the background.
    private static let uploadTicket = """
        CREATE TABLE upload_ticket (
            number INTEGER PRIMARY KEY,
            id BLOB NOT NULL UNIQUE,
            session BLOB NOT NULL,
            account INTEGER NOT NULL,
            release TEXT NOT NULL,
            method TEXT NOT NULL,
            authority TEXT NOT NULL,
            target BLOB NOT NULL,
            content_type TEXT,
            length INTEGER NOT NULL,
            sha256 BLOB NOT NULL,
            created INTEGER NOT NULL,
            expires INTEGER NOT NULL,
            claimed INTEGER,
            attempts INTEGER NOT NULL DEFAULT 0,
            row_tag BLOB
        ) STRICT;
        CREATE INDEX upload_ticket_of_account ON upload_ticket (account, claimed, expires);
        CREATE INDEX upload_ticket_of_session ON upload_ticket (session);
        CREATE INDEX upload_ticket_expires ON upload_ticket (expires);
        """

    /// Deletes the tickets of a session with it, so that none remains for a session that is gone.
    private static let forgottenSession = """
        CREATE TRIGGER upload_ticket_of_forgotten_session AFTER DELETE ON session BEGIN
            DELETE FROM upload_ticket WHERE session = OLD.id;
        END
        """
}
