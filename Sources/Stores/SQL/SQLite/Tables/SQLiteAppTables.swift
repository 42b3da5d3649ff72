/// Apps, their releases, and the settings of both.
extension SQLiteTables {
    static let apps = [app, appSetting, release, releaseSetting, releaseRollout]

    /// An app, whose name the other tables refer to.
    private static let app = """
        CREATE TABLE app (
            name TEXT PRIMARY KEY,
            created INTEGER NOT NULL,
            row_tag BLOB
        ) STRICT, WITHOUT ROWID;
        """

    /// A key of an app's policy that has another value than the default; secrets are sealed.
    private static let appSetting = """
        CREATE TABLE app_setting (
            app TEXT NOT NULL REFERENCES app (name),
            name TEXT NOT NULL,
            text TEXT,
            sealed BLOB,
            row_tag BLOB,
            PRIMARY KEY (app, name),
            CHECK ((text IS NULL) <> (sealed IS NULL))
        ) STRICT, WITHOUT ROWID;
        """

    /// A version of an app on a platform, with its key, the key's successor, and the stages of its
    /// retirement.
    private static let release = """
        CREATE TABLE release (
            number INTEGER PRIMARY KEY,
            key_id TEXT NOT NULL UNIQUE,
            app TEXT NOT NULL REFERENCES app (name),
            platform TEXT NOT NULL,
            version TEXT NOT NULL,
            scheme TEXT NOT NULL,
            sealed_secret BLOB NOT NULL,
            created INTEGER NOT NULL,
            retired_at INTEGER,
            update_url TEXT,
            sealed_next_secret BLOB,
            warn_at INTEGER,
            read_only_at INTEGER,
            row_tag BLOB,
            UNIQUE (app, platform, version, scheme),
            CHECK ((retired_at IS NULL) = (update_url IS NULL))
        ) STRICT;
        """

    /// A policy key that a release overrides.
    private static let releaseSetting = """
        CREATE TABLE release_setting (
            key_id TEXT NOT NULL REFERENCES release (key_id),
            name TEXT NOT NULL,
            text TEXT NOT NULL,
            row_tag BLOB,
            PRIMARY KEY (key_id, name)
        ) STRICT, WITHOUT ROWID;
        """

    /// From when on a release's retirement applies to which share of its devices.
    private static let releaseRollout = """
        CREATE TABLE release_rollout (
            key_id TEXT NOT NULL REFERENCES release (key_id),
            since INTEGER NOT NULL,
            percent INTEGER NOT NULL,
            row_tag BLOB,
            PRIMARY KEY (key_id, since)
        ) STRICT, WITHOUT ROWID;
        """
}
