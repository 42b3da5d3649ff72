import CountersignWire

/// How the file is laid out, step by step: each runs once, in order, in one transaction with the count of steps taken
/// (`user_version`). A step that has been released is never edited.
enum Migrations {
    /// `CSN1`: tells our files from other programs' (`PRAGMA application_id`).
    static let applicationID: Int64 = 0x4353_4E31

    static let steps = [m001, m002, m003, m004, m005, m006, m007, m008, m009, m010, m011, m012]

    private static let m001 = """
        CREATE TABLE meta (
            name TEXT PRIMARY KEY,
            value BLOB NOT NULL
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE revision (
            number INTEGER NOT NULL
        ) STRICT;
        INSERT INTO revision VALUES (0);

        CREATE TABLE app (
            name TEXT PRIMARY KEY,
            created INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE app_setting (
            app TEXT NOT NULL REFERENCES app (name),
            name TEXT NOT NULL,
            text TEXT,
            sealed BLOB,
            PRIMARY KEY (app, name),
            CHECK ((text IS NULL) <> (sealed IS NULL))
        ) STRICT, WITHOUT ROWID;

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
            UNIQUE (app, platform, version, scheme),
            CHECK ((retired_at IS NULL) = (update_url IS NULL))
        ) STRICT;
        """

    private static let m002 = """
        ALTER TABLE release ADD COLUMN sealed_next_secret BLOB;

        CREATE TABLE release_setting (
            key_id TEXT NOT NULL REFERENCES release (key_id),
            name TEXT NOT NULL,
            text TEXT NOT NULL,
            PRIMARY KEY (key_id, name)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE meter (
            day INTEGER NOT NULL,
            app TEXT NOT NULL,
            key_id TEXT NOT NULL,
            scheme TEXT NOT NULL,
            outcome TEXT NOT NULL,
            count INTEGER NOT NULL,
            last_seen INTEGER NOT NULL,
            PRIMARY KEY (day, app, key_id, scheme, outcome)
        ) STRICT, WITHOUT ROWID;
        """

    static func version(_ database: Database) throws(Fault) -> Int64 {
        try database.integer("PRAGMA user_version") ?? 0
    }

    static func run(on database: Database) throws(Fault) {
        try database.transaction { () throws(Fault) in
            let done = try version(database)
            for number in Int(done)..<max(steps.count, Int(done)) { try database.execute(steps[number]) }
            try database.execute("PRAGMA application_id = \(applicationID)")
            try database.execute("PRAGMA user_version = \(max(Int64(steps.count), done))")
        }
    }
}
