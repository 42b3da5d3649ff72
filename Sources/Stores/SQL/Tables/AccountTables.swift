/// Accounts, and what is kept of each besides its sessions.
extension SchemaDialect {
    var accounts: String {
        """
        -- An account of an app. Its row stays after an erasure, without name and pseudonym, so that its
        -- number is not used again.
        CREATE TABLE account (
            number \(identity),
            app \(text) NOT NULL REFERENCES app (name),
            name \(text) NOT NULL,
            user_id \(integer),
            created \(integer) NOT NULL,
            state \(text) NOT NULL,
            credential \(bytes), sealed_record \(bytes),
            rung \(text), sealed_legacy \(bytes),
            reset_codes \(bytes),
            pseudonym \(bytes),
            row_tag \(bytes),
            UNIQUE (app, name),
            CHECK ((credential IS NULL) = (sealed_record IS NULL)),
            CHECK ((rung IS NULL) = (sealed_legacy IS NULL)),
            CHECK (credential IS NULL OR rung IS NULL)
        )\(rows);
        CREATE INDEX account_of_app ON account (app\(byNumber));
        CREATE UNIQUE INDEX account_user_id ON account (app, user_id) WHERE user_id IS NOT NULL;
        CREATE UNIQUE INDEX account_pseudonym ON account (pseudonym) WHERE pseudonym IS NOT NULL;

        -- The keyed tombstone of an erased account's name or user id, which stays reserved.
        CREATE TABLE erased_name (
            app \(text) NOT NULL REFERENCES app (name),
            tombstone \(bytes) NOT NULL,
            row_tag \(bytes),
            PRIMARY KEY (app, tombstone)
        )\(rowsByKey);

        -- A device that an account has signed in on, by the key that never leaves it.
        CREATE TABLE known_device (
            account \(integer) NOT NULL REFERENCES account (number),
            id \(bytes) NOT NULL, signing_key \(bytes) NOT NULL,
            last_seen \(integer) NOT NULL,
            class \(text) NOT NULL, name \(text) NOT NULL,
            first_seen \(integer) NOT NULL,
            row_tag \(bytes),
            PRIMARY KEY (account, id)
        )\(rowsByKey);

        -- A one-time code of an account. It counts for a day for how often codes are made, whether or not it
        -- can still be redeemed.
        CREATE TABLE account_code (
            account \(integer) NOT NULL,
            id \(bytes) NOT NULL,
            purpose \(text) NOT NULL,
            digest \(bytes) NOT NULL,
            made \(integer) NOT NULL, expires \(integer) NOT NULL,
            tries \(integer) NOT NULL,
            row_tag \(bytes),
            PRIMARY KEY (account, id)
        )\(rowsByKey);
        CREATE INDEX account_code_made ON account_code (made);

        -- When an account was verified.
        CREATE TABLE account_verification (
            account \(integer) PRIMARY KEY,
            verified \(integer) NOT NULL,
            row_tag \(bytes)
        )\(rowsByKey);
        """
    }
}
