/// Apps, their releases, and the settings of both.
extension PostgreSQLTables {
    static let apps = [app, appSetting, release, releaseSetting, releaseRollout]

    /// An app, whose name the other tables refer to.
    private static let app = """
        CREATE TABLE app (name utf8 PRIMARY KEY, created bigint NOT NULL, row_tag bytea);
        """

    /// A key of an app's policy that has another value than the default; secrets are sealed.
    private static let appSetting = """
        CREATE TABLE app_setting (
            app utf8 NOT NULL REFERENCES app (name),
            name utf8 NOT NULL,
            text utf8,
            sealed bytea,
            row_tag bytea,
            PRIMARY KEY (app, name),
            CHECK ((text IS NULL) <> (sealed IS NULL))
        );
        """

    /// A version of an app on a platform, with its key, the key's successor, and the stages of its
    /// retirement.
    private static let release = """
        CREATE TABLE release (
            number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            key_id utf8 NOT NULL UNIQUE,
            app utf8 NOT NULL REFERENCES app (name),
            platform utf8 NOT NULL,
            version utf8 NOT NULL,
            scheme utf8 NOT NULL,
            sealed_secret bytea NOT NULL,
            created bigint NOT NULL,
            retired_at bigint,
            update_url utf8,
            sealed_next_secret bytea,
            warn_at bigint,
            read_only_at bigint,
            row_tag bytea,
            UNIQUE (app, platform, version, scheme),
            CHECK ((retired_at IS NULL) = (update_url IS NULL))
        );
        """

    /// A policy key that a release overrides.
    private static let releaseSetting = """
        CREATE TABLE release_setting (
            key_id utf8 NOT NULL REFERENCES release (key_id),
            name utf8 NOT NULL,
            text utf8 NOT NULL,
            row_tag bytea,
            PRIMARY KEY (key_id, name)
        );
        """

    /// From when on a release's retirement applies to which share of its devices.
    private static let releaseRollout = """
        CREATE TABLE release_rollout (
            key_id utf8 NOT NULL REFERENCES release (key_id),
            since bigint NOT NULL,
            percent bigint NOT NULL,
            row_tag bytea,
            PRIMARY KEY (key_id, since)
        );
        """
}
