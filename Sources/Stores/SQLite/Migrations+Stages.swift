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
}
