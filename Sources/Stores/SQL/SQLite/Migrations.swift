import CountersignAuthority
import CountersignWire

/// The layout of the file as a list of migrations. Each runs once, in order, in one transaction with the
/// count of applied migrations (`user_version`). A migration that has been released is never edited.
enum Migrations {
    /// `CSN1`: distinguishes our files from those of other programs (`PRAGMA application_id`).
    static let applicationID: Int64 = 0x4353_4E31

    static let steps = [
        m001, m002, m003, m004, m005, m006, m007, m008, m009, m010, m011, m012, m013, m014, m015, m016, m017,
        m018, m019, m020, m021,
    ]

    /// What each step is about, for `countersign migrate --check`.
    static let names = [
        "apps and releases", "next keys and the meter", "the audit log",
        "accounts, sessions and keyed requests", "stages of retirements", "releases of sessions",
        "use of keyed requests", "networks of keyed requests", "openings of sessions",
        "renewal of legacy sessions", "storage of keys", "upload tickets", "counters of refreshes",
        "names of known devices", "pseudonyms and erased names", "routes and lengths of passwords",
        "tags of rows", "the slot of the master key", "ages of sessions", "the outbox of webhooks",
        "codes and verifications of accounts",
    ]

    /// The migrations that a file of `level` lacks. Builds without them refuse the file.
    static func pending(after level: Int64) -> [SchemaPlan.Step] {
        names.enumerated().dropFirst(Int(level)).map { place, name in
            SchemaPlan.Step(level: Int64(place) + 1, name: name, kind: .contracting)
        }
    }

    /// The layout from which on rows have tags.
    static let authenticatedVersion: Int64 = 17

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

    static func version(_ database: Database) throws(OperationalError) -> Int64 {
        try database.integer("PRAGMA user_version") ?? 0
    }

    /// Throws, and changes nothing, if the file of an earlier level cannot be copied first.
    static func run(on database: Database) throws(OperationalError) -> SchemaOutcome {
        try database.transaction { () throws(OperationalError) in
            let done = try version(database)
            var outcome = SchemaOutcome(done: pending(after: done))
            if done > 0, !outcome.done.isEmpty {
                outcome.backup = try SQLiteBackup.make(of: database.path, level: done)
            }
            for number in Int(done)..<max(steps.count, Int(done)) { try database.execute(steps[number]) }
            try Schema.require(in: database)
            try database.execute("PRAGMA application_id = \(applicationID)")
            try database.execute("PRAGMA user_version = \(max(Int64(steps.count), done))")
            return outcome
        }
    }
}

extension Migrations {
    /// Dropped and created again by the one rewriting of the log.
    static let auditIsNotAltered = """
        CREATE TRIGGER audit_is_not_altered BEFORE UPDATE ON audit
        BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END;
        """

    /// The audit log. The triggers prevent accidental changes; the chain of tags detects deliberate ones.
    static let m003 = """
        CREATE TABLE audit (
            number INTEGER PRIMARY KEY,
            record TEXT NOT NULL,
            tag BLOB NOT NULL
        ) STRICT;

        \(auditIsNotAltered)

        CREATE TRIGGER audit_is_not_cut BEFORE DELETE ON audit
        BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END;
        """
}

extension Migrations {
    /// Accounts, their known devices and sessions, and idempotent requests.
    ///
    /// A session's row has the number of its last change as its key, so that rows changed after a number
    /// lie together, in order, at the end of the table: a starting server reads a million of them
    /// sequentially.
    static let m004 = """
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
            UNIQUE (app, name),
            CHECK ((credential IS NULL) = (sealed_record IS NULL)),
            CHECK ((rung IS NULL) = (sealed_legacy IS NULL)),
            CHECK (credential IS NULL OR rung IS NULL),
            CHECK ((reset_hash IS NULL) = (reset_until IS NULL))
        ) STRICT;
        CREATE INDEX account_of_app ON account (app);
        CREATE UNIQUE INDEX account_user_id ON account (app, user_id) WHERE user_id IS NOT NULL;

        CREATE TABLE known_device (
            account INTEGER NOT NULL REFERENCES account (number),
            id BLOB NOT NULL,
            signing_key BLOB NOT NULL,
            last_seen INTEGER NOT NULL,
            PRIMARY KEY (account, id)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE session_change (
            number INTEGER NOT NULL
        ) STRICT;
        INSERT INTO session_change VALUES (0);

        CREATE TABLE session (
            change INTEGER PRIMARY KEY,
            id BLOB NOT NULL UNIQUE,
            account INTEGER NOT NULL REFERENCES account (number),
            app TEXT NOT NULL,
            platform TEXT NOT NULL,
            device_class TEXT NOT NULL,
            device_name TEXT NOT NULL,
            created INTEGER NOT NULL,
            used INTEGER NOT NULL,
            ended_at INTEGER,
            end_reason TEXT,
            ended_by TEXT,
            signing_key BLOB,
            agreement_key BLOB,
            epoch INTEGER,
            epoch_began INTEGER,
            sealed_root BLOB,
            sealed_previous_root BLOB,
            attempts BLOB,
            next_sealed_root BLOB,
            next_ephemeral BLOB,
            next_attempts BLOB,
            token_hash BLOB,
            token_expires INTEGER,
            previous_token_hash BLOB,
            login_token_hash BLOB,
            token_issued INTEGER,
            previous_login_token_hash BLOB,
            CHECK ((ended_at IS NULL) = (end_reason IS NULL)),
            CHECK ((signing_key IS NULL) <> (token_hash IS NULL))
        ) STRICT;
        CREATE INDEX session_of_account ON session (account, ended_at);
        CREATE INDEX session_idle ON session (app, used) WHERE ended_at IS NULL;
        CREATE INDEX session_ended ON session (ended_at) WHERE ended_at IS NOT NULL;

        CREATE TABLE idempotent_request (
            scope TEXT NOT NULL,
            key BLOB NOT NULL,
            digest BLOB NOT NULL,
            begun INTEGER NOT NULL,
            status INTEGER,
            fields BLOB,
            body BLOB,
            UNIQUE (scope, key)
        ) STRICT;
        CREATE INDEX idempotent_request_begun ON idempotent_request (begun);
        """
}

extension Migrations {
    /// The stages of a release's retirement, and the shares of its devices.
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

    /// The release that a session was last renewed under; and an index that orders an account's live and
    /// ended sessions by age.
    static let m006 = """
        ALTER TABLE session ADD COLUMN release TEXT;
        DROP INDEX session_of_account;
        CREATE INDEX session_of_account ON session (account, ended_at, created);
        """

    /// Whether a session was opened without a signature, in an app that allows the token scheme. Earlier
    /// sessions were not, nor are those that a server of the previous version opens.
    static let m009 = """
        ALTER TABLE session ADD COLUMN opening TEXT NOT NULL DEFAULT 'signed';
        """
}

extension Migrations {
    /// The usage of idempotent requests, maintained by triggers per scope and per kind (the scope's first
    /// word): counting it at each request would scan the table.
    static let m007 = """
        CREATE TABLE idempotent_use (
            owner TEXT PRIMARY KEY,
            keys INTEGER NOT NULL,
            bytes INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;

        INSERT INTO idempotent_use
            SELECT scope, count(*), sum(coalesce(length(fields), 0) + coalesce(length(body), 0))
            FROM idempotent_request GROUP BY scope;
        INSERT INTO idempotent_use
            SELECT substr(owner, 1, instr(owner, ' ') - 1), sum(keys), sum(bytes) FROM idempotent_use \
        WHERE true
            GROUP BY 1;

        CREATE TRIGGER idempotent_request_begun AFTER INSERT ON idempotent_request BEGIN
            INSERT INTO idempotent_use VALUES
                (NEW.scope, 1, coalesce(length(NEW.fields), 0) + coalesce(length(NEW.body), 0)),
                (substr(NEW.scope, 1, instr(NEW.scope, ' ') - 1), 1,
                    coalesce(length(NEW.fields), 0) + coalesce(length(NEW.body), 0))
            ON CONFLICT DO UPDATE SET keys = keys + 1, bytes = bytes + excluded.bytes;
        END;

        CREATE TRIGGER idempotent_request_finished AFTER UPDATE OF fields, body ON idempotent_request BEGIN
            UPDATE idempotent_use SET bytes = bytes
                + coalesce(length(NEW.fields), 0) + coalesce(length(NEW.body), 0)
                - coalesce(length(OLD.fields), 0) - coalesce(length(OLD.body), 0)
            WHERE owner IN (NEW.scope, substr(NEW.scope, 1, instr(NEW.scope, ' ') - 1));
        END;

        CREATE TRIGGER idempotent_request_forgotten AFTER DELETE ON idempotent_request BEGIN
            UPDATE idempotent_use SET keys = keys - 1,
                bytes = bytes - coalesce(length(OLD.fields), 0) - coalesce(length(OLD.body), 0)
            WHERE owner IN (OLD.scope, substr(OLD.scope, 1, instr(OLD.scope, ' ') - 1));
            DELETE FROM idempotent_use WHERE owner = OLD.scope AND keys = 0;
        END;
        """

    /// The usage is also maintained per holder: an account by its scope, as before, and the networks of
    /// callers without a session under a name of their own. Earlier rows, and rows that a server of the
    /// previous version writes, have no network. The index by weight finds the account or network with the
    /// most usage, and the other index the oldest of its finished requests.
    static let m008 = """
        ALTER TABLE idempotent_request ADD COLUMN network TEXT;
        CREATE INDEX idempotent_request_held ON idempotent_request (coalesce(network, scope), begun)
            WHERE status IS NOT NULL;
        CREATE INDEX idempotent_use_weight ON idempotent_use (substr(owner, 1, 7), max(keys * 4096, bytes));

        CREATE TRIGGER idempotent_network_begun AFTER INSERT ON idempotent_request \
        WHEN NEW.network IS NOT NULL BEGIN
            INSERT INTO idempotent_use VALUES
                (NEW.network, 1, coalesce(length(NEW.fields), 0) + coalesce(length(NEW.body), 0))
            ON CONFLICT DO UPDATE SET keys = keys + 1, bytes = bytes + excluded.bytes;
        END;

        CREATE TRIGGER idempotent_network_finished AFTER UPDATE OF fields, body ON idempotent_request
        WHEN NEW.network IS NOT NULL BEGIN
            UPDATE idempotent_use SET bytes = bytes
                + coalesce(length(NEW.fields), 0) + coalesce(length(NEW.body), 0)
                - coalesce(length(OLD.fields), 0) - coalesce(length(OLD.body), 0)
            WHERE owner = NEW.network;
        END;

        CREATE TRIGGER idempotent_network_forgotten AFTER DELETE ON idempotent_request
        WHEN OLD.network IS NOT NULL BEGIN
            UPDATE idempotent_use SET keys = keys - 1,
                bytes = bytes - coalesce(length(OLD.fields), 0) - coalesce(length(OLD.body), 0)
            WHERE owner = OLD.network;
            DELETE FROM idempotent_use WHERE owner = OLD.network AND keys = 0;
        END;
        """
}

extension Migrations {
    /// The renewal of tokens by legacy clients becomes a setting of the app; before, it was always on. Apps
    /// whose legacy clients have tokens of the authority keep it.
    static let m010 = """
        INSERT OR IGNORE INTO app_setting (app, name, text)
            SELECT app, 'legacy-renewal', 'on' FROM app_setting
            WHERE name = 'legacy-session' AND text = 'authority';
        """
}

extension Migrations {
    /// Where a session's device says that it keeps its keys: `software`, `tpm` or `secure-enclave`; null if
    /// it did not say.
    static let m011 = """
        ALTER TABLE session ADD COLUMN key_storage TEXT;
        """
}

extension Migrations {
    /// Upload tickets. They are deleted with their session, so that none remains for a session that is gone.
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

    /// The highest counter of a refresh, and the digest of the transcript that had it; null for sessions
    /// whose client has not numbered a transcript. The releases of the epoch in use, the one before and the
    /// offered one: what earlier versions stored is the last of them, and where that is another than an
    /// epoch's own, a refresh mends it.
    static let m013 = """
        ALTER TABLE session ADD COLUMN refresh_counter INTEGER;
        ALTER TABLE session ADD COLUMN refresh_digest BLOB;
        ALTER TABLE session ADD COLUMN epoch_release TEXT;
        ALTER TABLE session ADD COLUMN previous_release TEXT;
        ALTER TABLE session ADD COLUMN next_release TEXT;
        UPDATE session SET epoch_release = release, previous_release = release,
            next_release = CASE WHEN next_sealed_root IS NULL THEN NULL ELSE release END
            WHERE signing_key IS NOT NULL AND release IS NOT NULL;
        """
}

extension Migrations {
    /// What is shown of a known device. Devices from before get it from their sessions, as far as those are
    /// kept.
    static let m014 = """
        ALTER TABLE known_device ADD COLUMN class TEXT;
        ALTER TABLE known_device ADD COLUMN name TEXT;
        ALTER TABLE known_device ADD COLUMN first_seen INTEGER;
        UPDATE known_device SET (class, name, first_seen) = (
            SELECT device_class, device_name, min(created) FROM session
            WHERE session.account = known_device.account AND session.signing_key = known_device.signing_key);
        """
}

extension Migrations {
    /// The pseudonyms by which the audit log names accounts, null once an account is erased, and the
    /// tombstones
    /// of erased names. The trigger is for a server of the previous version that is still running.
    static let m015 = """
        ALTER TABLE account ADD COLUMN pseudonym BLOB;
        UPDATE account SET pseudonym = randomblob(16);
        CREATE UNIQUE INDEX account_pseudonym ON account (pseudonym) WHERE pseudonym IS NOT NULL;
        CREATE TRIGGER account_pseudonym_missing AFTER INSERT ON account WHEN NEW.pseudonym IS NULL BEGIN
            UPDATE account SET pseudonym = randomblob(16) WHERE number = NEW.number;
        END;

        CREATE TABLE erased_name (
            app TEXT NOT NULL REFERENCES app (name),
            tombstone BLOB NOT NULL,
            PRIMARY KEY (app, tombstone)
        ) STRICT, WITHOUT ROWID;
        """
}

extension Migrations {
    /// Defaults that have changed are written down for the apps that are there, so that they keep them: a
    /// release's signature opens all routes of an app without route rules, and a new password has one
    /// character.
    static let m016 = """
        INSERT INTO app_setting (app, name, text)
            SELECT name, 'routes', '/ signed' FROM app WHERE NOT EXISTS (
                SELECT 1 FROM app_setting AS setting WHERE setting.app = app.name
                AND setting.name IN ('routes', 'anonymous', 'device-signed'));
        INSERT OR IGNORE INTO app_setting (app, name, text)
            SELECT name, 'password-min', '1' FROM app;
        """
}

extension Migrations {
    /// While the master key is replaced, processes that have not noticed it yet would go on sealing under the
    /// former key. Each new sealed value must have the first byte that `seal-slot` holds; one that the row
    /// had already, in whichever column, may stay.
    static let m018 = """
        ALTER TABLE meta ADD COLUMN row_tag BLOB;
        INSERT INTO meta (name, value) VALUES ('seal-slot', x'01');

        \(insertIsSealed("app_setting", columns: "sealed"))
        \(updateIsSealed("app_setting", columns: "sealed"))
        \(insertIsSealed("release", columns: "sealed_secret", "sealed_next_secret"))
        \(updateIsSealed("release", columns: "sealed_secret", "sealed_next_secret"))
        \(insertIsSealed("account", columns: "sealed_record", "sealed_legacy"))
        \(updateIsSealed("account", columns: "sealed_record", "sealed_legacy"))
        \(insertIsSealed("session", columns: "sealed_root", "sealed_previous_root", "next_sealed_root"))
        \(updateIsSealed("session", columns: "sealed_root", "sealed_previous_root", "next_sealed_root"))
        \(insertIsSealed("idempotent_request", columns: "body"))
        \(updateIsSealed("idempotent_request", columns: "body"))
        \(insertIsSealed("meta", columns: "value", of: sealedNames))
        \(updateIsSealed("meta", columns: "value", of: sealedNames))
        """

    /// The deployment's own values that are sealed.
    static let sealedNames = """
        NEW.name IN ('answer-key', 'assertion-keys', 'opaque-keys', 'registration-key', 'bearer-key', \
        'tombstone-key')
        """

    /// The message by which ``SQLiteResultCode`` knows these triggers.
    static let formerKey = "sealed under the former master key"

    private static func insertIsSealed(
        _ table: String, columns: String..., of condition: String = "true"
    ) -> String {
        let wrong = columns.map { isWrong("NEW.\($0)") }.joined(separator: " OR ")
        return """
            CREATE TRIGGER \(table)_insert_is_sealed BEFORE INSERT ON \(table)
            WHEN \(condition) AND (\(wrong))
            BEGIN SELECT RAISE(ABORT, '\(formerKey)'); END;
            """
    }

    private static func updateIsSealed(
        _ table: String, columns: String..., of condition: String = "true"
    ) -> String {
        let had = columns.map { "coalesce(OLD.\($0), x'')" }.joined(separator: ", ")
        let wrong = columns.map { "(NEW.\($0) NOT IN (\(had)) AND \(isWrong("NEW.\($0)")))" }
            .joined(separator: " OR ")
        return """
            CREATE TRIGGER \(table)_update_is_sealed BEFORE UPDATE OF \(columns.joined(separator: ", ")) \
            ON \(table)
            WHEN \(condition) AND (\(wrong))
            BEGIN SELECT RAISE(ABORT, '\(formerKey)'); END;
            """
    }

    /// Empty values are not sealed: an answer without a body.
    private static func isWrong(_ column: String) -> String {
        "length(\(column)) > 0 AND substr(\(column), 1, 1) "
            + "IS NOT (SELECT value FROM meta WHERE name = 'seal-slot')"
    }
}

extension Migrations {
    /// Adds a tag to each row that identifies callers, and a digest to each table. The deployment tags
    /// existing rows once after it has opened the store, because that needs the master key.
    ///
    /// A later migration may add nullable columns to these tables. It must not change the value of a covered
    /// column: it runs without the key, and the row would lose its tag.
    static let m017 = """
        ALTER TABLE app ADD COLUMN row_tag BLOB;
        ALTER TABLE app_setting ADD COLUMN row_tag BLOB;
        ALTER TABLE release ADD COLUMN row_tag BLOB;
        ALTER TABLE release_setting ADD COLUMN row_tag BLOB;
        ALTER TABLE release_rollout ADD COLUMN row_tag BLOB;
        ALTER TABLE account ADD COLUMN row_tag BLOB;
        ALTER TABLE known_device ADD COLUMN row_tag BLOB;
        ALTER TABLE session ADD COLUMN row_tag BLOB;
        ALTER TABLE upload_ticket ADD COLUMN row_tag BLOB;
        ALTER TABLE erased_name ADD COLUMN row_tag BLOB;

        CREATE TABLE row_digest (
            name TEXT NOT NULL UNIQUE,
            value BLOB NOT NULL
        ) STRICT;
        """

    /// Finds the sessions whose login is policy `session-max` ago.
    static let m019 = """
        CREATE INDEX session_age ON session (app, created) WHERE ended_at IS NULL;
        """

    /// Events for endpoints of webhooks, until they are delivered. A row counts to an account so that an
    /// erasure finds it.
    static let m020 = """
        CREATE TABLE webhook_delivery (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            endpoint TEXT NOT NULL,
            event TEXT NOT NULL,
            account INTEGER,
            created INTEGER NOT NULL,
            due INTEGER NOT NULL,
            attempts INTEGER NOT NULL,
            given_up INTEGER,
            failure TEXT,
            body BLOB NOT NULL
        ) STRICT;
        CREATE INDEX webhook_delivery_due ON webhook_delivery (due) WHERE given_up IS NULL;
        CREATE INDEX webhook_delivery_given_up ON webhook_delivery (given_up) WHERE given_up IS NOT NULL;
        CREATE INDEX webhook_delivery_of_account ON webhook_delivery (account);
        """

    /// One-time codes of accounts, and which accounts are verified. The rows have tags of their own.
    static let m021 = """
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
        CREATE TABLE account_verification (
            account INTEGER PRIMARY KEY,
            verified INTEGER NOT NULL,
            tag BLOB NOT NULL
        ) STRICT, WITHOUT ROWID;
        """

    /// The triggers of the migrations as triggers of one connection, except those that keep the audit log
    /// from mistakes by other programs.
    static let triggers: [String] = {
        var found: [(name: String, sql: String)] = []
        for step in steps {
            var rest = step[...]
            while let word = rest.firstRange(of: " TRIGGER ") {
                let isDropped = rest[..<word.lowerBound].hasSuffix("DROP")
                rest = rest[word.upperBound...]
                let name = String(rest.prefix { $0 != " " && $0 != ";" })
                found.removeAll { $0.name == name }
                guard !isDropped, let end = rest.firstRange(of: "END;") else { continue }
                found.append((name, "CREATE TEMP TRIGGER \(rest[..<end.upperBound])"))
                rest = rest[end.upperBound...]
            }
        }
        return found.map(\.sql).filter { !$0.contains(" ON audit\n") }
    }()
}
