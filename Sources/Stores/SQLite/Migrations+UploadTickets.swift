extension Migrations {
    /// Upload tickets. They go with their session, so that nothing of an account outlives it.
    static let m012 = """
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
            attempts INTEGER NOT NULL DEFAULT 0
        ) STRICT;
        CREATE INDEX upload_ticket_of_account ON upload_ticket (account, claimed, expires);
        CREATE INDEX upload_ticket_of_session ON upload_ticket (session);
        CREATE INDEX upload_ticket_expires ON upload_ticket (expires);

        CREATE TRIGGER upload_ticket_of_forgotten_session AFTER DELETE ON session BEGIN
            DELETE FROM upload_ticket WHERE session = OLD.id;
        END;
        """
}
