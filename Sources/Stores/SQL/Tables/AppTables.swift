/// Apps, their releases, and the settings of both.
extension SchemaDialect {
    var apps: String {
        """
        -- An app, whose name the other tables refer to.
        CREATE TABLE app (
            name \(text) PRIMARY KEY,
            created \(integer) NOT NULL,
            row_tag \(bytes)
        )\(rowsByKey);

        -- A key of an app's policy that has another value than the default; secrets are sealed.
        CREATE TABLE app_setting (
            app \(text) NOT NULL REFERENCES app (name),
            name \(text) NOT NULL,
            text \(text),
            sealed \(bytes),
            row_tag \(bytes),
            PRIMARY KEY (app, name),
            CHECK ((text IS NULL) <> (sealed IS NULL))
        )\(rowsByKey);

        -- A version of an app on a platform, with its key, the key's successor, and the stages of its
        -- retirement.
        CREATE TABLE release (
            number \(identity),
            key_id \(text) NOT NULL UNIQUE,
            app \(text) NOT NULL REFERENCES app (name),
            platform \(text) NOT NULL, version \(text) NOT NULL, scheme \(text) NOT NULL,
            sealed_secret \(bytes) NOT NULL,
            created \(integer) NOT NULL,
            retired_at \(integer), update_url \(text),
            sealed_next_secret \(bytes),
            warn_at \(integer), read_only_at \(integer),
            row_tag \(bytes),
            UNIQUE (app, platform, version, scheme),
            CHECK ((retired_at IS NULL) = (update_url IS NULL))
        )\(rows);

        -- A policy key that a release overrides.
        CREATE TABLE release_setting (
            key_id \(text) NOT NULL REFERENCES release (key_id),
            name \(text) NOT NULL,
            text \(text) NOT NULL,
            row_tag \(bytes),
            PRIMARY KEY (key_id, name)
        )\(rowsByKey);

        -- From when on a release's retirement applies to which share of its devices.
        CREATE TABLE release_rollout (
            key_id \(text) NOT NULL REFERENCES release (key_id),
            since \(integer) NOT NULL,
            percent \(integer) NOT NULL,
            row_tag \(bytes),
            PRIMARY KEY (key_id, since)
        )\(rowsByKey);
        """
    }
}
