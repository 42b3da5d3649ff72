/// Accounts, and what is kept of each besides its sessions.
extension PostgreSQLTables {
    static let accounts = [account, erasedName, knownDevice, accountCode, accountVerification]

    /// An account of an app. Its row stays after an erasure, without name and pseudonym, so that its number
    /// is not used again.
    private static let account = """
        CREATE TABLE account (
            number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            app utf8 NOT NULL REFERENCES app (name),
            name utf8 NOT NULL,
            user_id bigint,
            created bigint NOT NULL,
            state utf8 NOT NULL,
            credential bytea,
            sealed_record bytea,
            rung utf8,
            sealed_legacy bytea,
            reset_hash bytea,
            reset_until bigint,
            pseudonym bytea,
            row_tag bytea,
            UNIQUE (app, name),
            CHECK ((credential IS NULL) = (sealed_record IS NULL)),
            CHECK ((rung IS NULL) = (sealed_legacy IS NULL)),
            CHECK (credential IS NULL OR rung IS NULL),
            CHECK ((reset_hash IS NULL) = (reset_until IS NULL))
        );
        CREATE INDEX account_of_app ON account (app, number);
        CREATE UNIQUE INDEX account_user_id ON account (app, user_id) WHERE user_id IS NOT NULL;
        CREATE UNIQUE INDEX account_pseudonym ON account (pseudonym) WHERE pseudonym IS NOT NULL;
        """

    /// The keyed tombstone of an erased account's name, which reserves the name.
    private static let erasedName = """
        CREATE TABLE erased_name (
            app utf8 NOT NULL REFERENCES app (name),
            tombstone bytea NOT NULL,
            row_tag bytea,
            PRIMARY KEY (app, tombstone)
        );
        """

    /// A device that an account has signed in on, by the key that never leaves it.
    private static let knownDevice = """
        CREATE TABLE known_device (
            account bigint NOT NULL REFERENCES account (number),
            id bytea NOT NULL,
            signing_key bytea NOT NULL,
            last_seen bigint NOT NULL,
            class utf8 NOT NULL,
            name utf8 NOT NULL,
            first_seen bigint NOT NULL,
            row_tag bytea,
            PRIMARY KEY (account, id)
        );
        """

    /// A one-time code of an account. The row has a tag of its own, outside the digests.
    private static let accountCode = """
        CREATE TABLE account_code (
            account bigint NOT NULL,
            purpose utf8 NOT NULL,
            digest bytea NOT NULL,
            expires bigint NOT NULL,
            tries bigint NOT NULL,
            tag bytea NOT NULL,
            PRIMARY KEY (account, purpose)
        );
        CREATE INDEX account_code_expires ON account_code (expires);
        """

    /// When an account was verified. The row has a tag of its own, outside the digests.
    private static let accountVerification = """
        CREATE TABLE account_verification (
            account bigint PRIMARY KEY,
            verified bigint NOT NULL,
            tag bytea NOT NULL
        );
        """
}
