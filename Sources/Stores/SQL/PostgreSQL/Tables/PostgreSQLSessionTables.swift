/// Sessions, and the uploads that they allow.
extension PostgreSQLTables {
    static let sessions = [sessionChange, session, uploadTicket, forgottenSession]

    /// The number of the last change of a session.
    private static let sessionChange = """
        CREATE TABLE session_change (number bigint NOT NULL) WITH (fillfactor = 10);
        INSERT INTO session_change VALUES (0);
        """

    /// A session, by its device's key and the roots of its epochs, or by its tokens. Its key is the number of
    /// its last change.
    private static let session = """
        CREATE TABLE session (
            change bigint PRIMARY KEY,
            id bytea NOT NULL UNIQUE,
            account bigint NOT NULL REFERENCES account (number),
            app utf8 NOT NULL,
            platform utf8 NOT NULL,
            device_class utf8 NOT NULL,
            device_name utf8 NOT NULL,
            created bigint NOT NULL,
            used bigint NOT NULL,
            ended_at bigint,
            end_reason utf8,
            ended_by utf8,
            signing_key bytea,
            agreement_key bytea,
            epoch bigint,
            epoch_began bigint,
            sealed_root bytea,
            sealed_previous_root bytea,
            attempts bytea,
            next_sealed_root bytea,
            next_ephemeral bytea,
            next_attempts bytea,
            token_hash bytea,
            token_expires bigint,
            previous_token_hash bytea,
            login_token_hash bytea,
            token_issued bigint,
            previous_login_token_hash bytea,
            release utf8,
            opening utf8 NOT NULL,
            key_storage utf8,
            refresh_counter bigint,
            refresh_digest bytea,
            epoch_release utf8,
            previous_release utf8,
            next_release utf8,
            row_tag bytea,
            CHECK ((ended_at IS NULL) = (end_reason IS NULL)),
            CHECK ((signing_key IS NULL) <> (token_hash IS NULL))
        );
        CREATE INDEX session_of_account ON session (account, ended_at, created);
        CREATE INDEX session_idle ON session (app, used) WHERE ended_at IS NULL;
        CREATE INDEX session_age ON session (app, created) WHERE ended_at IS NULL;
        CREATE INDEX session_ended ON session (ended_at) WHERE ended_at IS NOT NULL;
        """

    /// A ticket for one upload in the background.
    private static let uploadTicket = """
        CREATE TABLE upload_ticket (
            number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            id bytea NOT NULL UNIQUE,
            session bytea NOT NULL,
            account bigint NOT NULL,
            release utf8 NOT NULL,
            method utf8 NOT NULL,
            authority utf8 NOT NULL,
            target bytea NOT NULL,
            content_type utf8,
            length bigint NOT NULL,
            sha256 bytea NOT NULL,
            created bigint NOT NULL,
            expires bigint NOT NULL,
            claimed bigint,
            attempts bigint NOT NULL DEFAULT 0,
            row_tag bytea
        );
        CREATE INDEX upload_ticket_of_account ON upload_ticket (account, claimed, expires);
        CREATE INDEX upload_ticket_of_session ON upload_ticket (session);
        CREATE INDEX upload_ticket_expires ON upload_ticket (expires);
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
}
