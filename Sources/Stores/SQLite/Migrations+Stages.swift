extension Migrations {
    /// A release leaves by stages, and those by shares of its devices.
    static let m005 = """
        ALTER TABLE release ADD COLUMN warn_at INTEGER;
        ALTER TABLE release ADD COLUMN read_only_at INTEGER;

        CREATE TABLE release_rollout (
            key_id TEXT NOT NULL REFERENCES release (key_id),
            since INTEGER NOT NULL,
            percent INTEGER NOT NULL,
            PRIMARY KEY (key_id, since)
        ) STRICT, WITHOUT ROWID;
        """

    /// Which release a session was last renewed under; and an account's newest live sessions, and those that ended last, found
    /// in order.
    static let m006 = """
        ALTER TABLE session ADD COLUMN release TEXT;
        DROP INDEX session_of_account;
        CREATE INDEX session_of_account ON session (account, ended_at, created);
        """

    /// Whether a session was opened without a signature, to an app that takes tokens alone. Those from before
    /// were not, and neither are those that a server of the former version opens.
    static let m009 = """
        ALTER TABLE session ADD COLUMN opening TEXT NOT NULL DEFAULT 'signed';
        """
}
