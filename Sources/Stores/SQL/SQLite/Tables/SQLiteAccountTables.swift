/// Accounts, and what is kept of each besides its sessions.
extension SQLiteTables {
    static let accounts = [account, erasedName, knownDevice, accountCode, accountVerification]

    /// An account of an app. Its row stays after an erasure, without name and pseudonym, so that its number
    /// is not used again.
    private static let account = """
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
            pseudonym BLOB,
            row_tag BLOB,
            UNIQUE (app, name),
            CHECK ((credential IS NULL) = (sealed_record IS NULL)),
            CHECK ((rung IS NULL) = (sealed_legacy IS NULL)),
            CHECK (credential IS NULL OR rung IS NULL),
            CHECK ((reset_hash IS NULL) = (reset_until IS NULL))
        ) STRICT;
        CREATE INDEX account_of_app ON account (app);
        CREATE UNIQUE INDEX account_user_id ON account (app, user_id) WHERE user_id IS NOT NULL;
        CREATE UNIQUE INDEX account_pseudonym ON account (pseudonym) WHERE pseudonym IS NOT NULL;
        """

    /// The keyed tombstone of an erased account's name, which reserves the name.
    private static let erasedName = """
        CREATE TABLE erased_name (
            app TEXT NOT NULL REFERENCES app (name),
            tombstone BLOB NOT NULL,
            row_tag BLOB,
            PRIMARY KEY (app, tombstone)
        ) STRICT, WITHOUT ROWID;
        """

    /// A device that an account has signed in on, by the key that never leaves it.
    private static let knownDevice = """
        CREATE TABLE known_device (
            account INTEGER NOT NULL REFERENCES account (number),
            id BLOB NOT NULL,
            signing_key BLOB NOT NULL,
            last_seen INTEGER NOT NULL,
            class TEXT NOT NULL,
            name TEXT NOT NULL,
            first_seen INTEGER NOT NULL,
            row_tag BLOB,
            PRIMARY KEY (account, id)
        ) STRICT, WITHOUT ROWID;
        """

    /// A one-time code of an account. The row has a tag of its own, outside the digests.
    private static let accountCode = """
        CREATE TABLE account_code (
            account INTEGER NOT NULL,
            purpose TEXT NOT NULL,
            digest BLOB NOT NULL,
            expires INTEGER NOT NULL,
            tries INTEGER NOT NULL,
            tag BLOB NOT NULL,
            PRIMARY KEY (account, purpose)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX account_code_expires ON account_code (expires);
        """

    /// When an account was verified. The row has a tag of its own, outside the digests.
    private static let accountVerification = """
        CREATE TABLE account_verification (
            account INTEGER PRIMARY KEY,
            verified INTEGER NOT NULL,
            tag BLOB NOT NULL
        ) STRICT, WITHOUT ROWID;
        """
}
