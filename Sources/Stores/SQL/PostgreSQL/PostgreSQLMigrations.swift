import CountersignAuthority
import CountersignWire

/// The layout in a PostgreSQL database, in the schema `countersign`, as a list of migrations. Each runs once,
/// in order, in one transaction with the count of applied migrations. A migration that has been released is
/// never edited.
///
/// The tables are those of SQLite's latest layout (``Migrations``). Texts are `utf8`, a domain over `bytea`:
/// they may contain any byte, and are ordered by their bytes, as in SQLite.
enum PostgreSQLMigrations {
    static let steps = [
        PostgreSQLMigration(name: "tables of SQLite's level 19", kind: .contracting, sql: p001),
        PostgreSQLMigration(name: "nodes", kind: .contracting, sql: p002),
        PostgreSQLMigration(name: "pending logins", kind: .contracting, sql: pendingLogins),
        PostgreSQLMigration(name: "limits on logins", kind: .contracting, sql: loginLimits),
        PostgreSQLMigration(name: "record of the level", kind: .contracting, sql: levelRecord),
        PostgreSQLMigration(name: "master keys of nodes", kind: .expanding(oldestLevel: 5), sql: masterKeys),
        PostgreSQLMigration(
            name: "the outbox of webhooks", kind: .expanding(oldestLevel: 5), sql: webhookDeliveries),
        PostgreSQLMigration(
            name: "codes and verifications of accounts", kind: .expanding(oldestLevel: 5), sql: accountCodes),
    ]
    /// The level from which on there is a table of nodes.
    static let nodesLevel: Int64 = 2
    /// The level from which on a database has a record of its level.
    static let recordedLevel: Int64 = 5
    /// The level from which on nodes say which next master key they have.
    static let announcedKeyLevel: Int64 = 6

    /// The number of migrations that the database has; zero if it has no layout of ours.
    static func version(_ database: Database) throws(OperationalError) -> Int64 {
        guard try database.hasTable("layout") else { return 0 }
        return try database.integer("SELECT number FROM layout") ?? 0
    }

    /// SQLite's level 20.
    private static let webhookDeliveries = """
        CREATE TABLE webhook_delivery (
            number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            endpoint utf8 NOT NULL,
            event utf8 NOT NULL,
            account bigint,
            created bigint NOT NULL,
            due bigint NOT NULL,
            attempts bigint NOT NULL,
            given_up bigint,
            failure utf8,
            body bytea NOT NULL
        );
        CREATE INDEX webhook_delivery_due ON webhook_delivery (due) WHERE given_up IS NULL;
        CREATE INDEX webhook_delivery_given_up ON webhook_delivery (given_up) WHERE given_up IS NOT NULL;
        CREATE INDEX webhook_delivery_of_account ON webhook_delivery (account);
        """

    /// SQLite's level 21.
    private static let accountCodes = """
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
        CREATE TABLE account_verification (
            account bigint PRIMARY KEY,
            verified bigint NOT NULL,
            tag bytea NOT NULL
        );
        """

    private static let p001 = """
        CREATE DOMAIN utf8 AS bytea;

        -- The statements are SQLite's, where this is a function and no aggregate.
        CREATE FUNCTION max(bigint, bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
            AS 'SELECT greatest($1, $2)';

        CREATE TABLE layout (number bigint NOT NULL);
        INSERT INTO layout VALUES (0);

        -- Each transaction that changes something locks the row and counts itself.
        CREATE TABLE writing (number bigint NOT NULL) WITH (fillfactor = 10);
        INSERT INTO writing VALUES (0);

        CREATE TABLE meta (name utf8 PRIMARY KEY, value bytea NOT NULL, row_tag bytea);
        INSERT INTO meta (name, value) VALUES ('seal-slot', '\\x01');

        CREATE TABLE revision (number bigint NOT NULL);
        INSERT INTO revision VALUES (0);

        CREATE TABLE app (name utf8 PRIMARY KEY, created bigint NOT NULL, row_tag bytea);

        CREATE TABLE app_setting (
            app utf8 NOT NULL REFERENCES app (name),
            name utf8 NOT NULL,
            text utf8,
            sealed bytea,
            row_tag bytea,
            PRIMARY KEY (app, name),
            CHECK ((text IS NULL) <> (sealed IS NULL))
        );

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

        CREATE TABLE release_setting (
            key_id utf8 NOT NULL REFERENCES release (key_id),
            name utf8 NOT NULL,
            text utf8 NOT NULL,
            row_tag bytea,
            PRIMARY KEY (key_id, name)
        );

        CREATE TABLE release_rollout (
            key_id utf8 NOT NULL REFERENCES release (key_id),
            since bigint NOT NULL,
            percent bigint NOT NULL,
            row_tag bytea,
            PRIMARY KEY (key_id, since)
        );

        CREATE TABLE meter (
            day bigint NOT NULL,
            app utf8 NOT NULL,
            key_id utf8 NOT NULL,
            scheme utf8 NOT NULL,
            outcome utf8 NOT NULL,
            count bigint NOT NULL,
            last_seen bigint NOT NULL,
            PRIMARY KEY (day, app, key_id, scheme, outcome)
        );

        CREATE TABLE audit (number bigint PRIMARY KEY, record utf8 NOT NULL, tag bytea NOT NULL);

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

        CREATE TABLE erased_name (
            app utf8 NOT NULL REFERENCES app (name),
            tombstone bytea NOT NULL,
            row_tag bytea,
            PRIMARY KEY (app, tombstone)
        );

        CREATE TABLE known_device (
            account bigint NOT NULL REFERENCES account (number),
            id bytea NOT NULL,
            signing_key bytea NOT NULL,
            last_seen bigint NOT NULL,
            class utf8,
            name utf8,
            first_seen bigint,
            row_tag bytea,
            PRIMARY KEY (account, id)
        );

        CREATE TABLE session_change (number bigint NOT NULL) WITH (fillfactor = 10);
        INSERT INTO session_change VALUES (0);

        CREATE TABLE session (
            change bigint PRIMARY KEY,
            id bytea NOT NULL UNIQUE,
            account bigint NOT NULL REFERENCES account (number),
            app utf8 NOT NULL,
            platform utf8 NOT NULL,
            device_class utf8 NOT NULL,
            device_name utf8 NOT NULL,
            created bigint NOT NULL,
            used bigint NOT NULL,
            ended_at bigint,
            end_reason utf8,
            ended_by utf8,
            signing_key bytea,
            agreement_key bytea,
            epoch bigint,
            epoch_began bigint,
            sealed_root bytea,
            sealed_previous_root bytea,
            attempts bytea,
            next_sealed_root bytea,
            next_ephemeral bytea,
            next_attempts bytea,
            token_hash bytea,
            token_expires bigint,
            previous_token_hash bytea,
            login_token_hash bytea,
            token_issued bigint,
            previous_login_token_hash bytea,
            release utf8,
            opening utf8 NOT NULL,
            key_storage utf8,
            refresh_counter bigint,
            refresh_digest bytea,
            epoch_release utf8,
            previous_release utf8,
            next_release utf8,
            row_tag bytea,
            CHECK ((ended_at IS NULL) = (end_reason IS NULL)),
            CHECK ((signing_key IS NULL) <> (token_hash IS NULL))
        );
        CREATE INDEX session_of_account ON session (account, ended_at, created);
        CREATE INDEX session_idle ON session (app, used) WHERE ended_at IS NULL;
        CREATE INDEX session_age ON session (app, created) WHERE ended_at IS NULL;
        CREATE INDEX session_ended ON session (ended_at) WHERE ended_at IS NOT NULL;

        CREATE TABLE upload_ticket (
            number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            id bytea NOT NULL UNIQUE,
            session bytea NOT NULL,
            account bigint NOT NULL,
            release utf8 NOT NULL,
            method utf8 NOT NULL,
            authority utf8 NOT NULL,
            target bytea NOT NULL,
            content_type utf8,
            length bigint NOT NULL,
            sha256 bytea NOT NULL,
            created bigint NOT NULL,
            expires bigint NOT NULL,
            claimed bigint,
            attempts bigint NOT NULL DEFAULT 0,
            row_tag bytea
        );
        CREATE INDEX upload_ticket_of_account ON upload_ticket (account, claimed, expires);
        CREATE INDEX upload_ticket_of_session ON upload_ticket (session);
        CREATE INDEX upload_ticket_expires ON upload_ticket (expires);

        CREATE TABLE idempotent_request (
            rowid bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            scope utf8 NOT NULL,
            network utf8,
            key bytea NOT NULL,
            digest bytea NOT NULL,
            begun bigint NOT NULL,
            status bigint,
            fields bytea,
            body bytea,
            UNIQUE (scope, key)
        );
        CREATE INDEX idempotent_request_begun ON idempotent_request (begun);
        CREATE INDEX idempotent_request_held ON idempotent_request (coalesce(network, scope), begun)
            WHERE status IS NOT NULL;

        -- The usage of idempotent requests by scope, by kind (the scope's first word) and by network.
        CREATE TABLE idempotent_use (owner utf8 PRIMARY KEY, keys bigint NOT NULL, bytes bigint NOT NULL);
        CREATE INDEX idempotent_use_weight ON idempotent_use (substr(owner, 1, 7), max(keys * 4096, bytes));

        CREATE TABLE row_digest (name utf8 NOT NULL UNIQUE, value bytea NOT NULL);

        \(usage)
        \(guards)
        \(sealing)
        \(AuthenticatedTable.all.map(\.postgreSQLTriggers).joined(separator: "\n"))
        """

    /// What several gateways over one database need: they are told of changes, and of each other.
    private static let p002 = """
        -- Counts the changes of what a node keeps in memory, apart from sessions, which have numbers.
        CREATE TABLE generation (number bigint NOT NULL) WITH (fillfactor = 10);
        INSERT INTO generation VALUES (0);

        CREATE TABLE node (
            id utf8 PRIMARY KEY,
            name utf8 NOT NULL,
            replay_guard utf8 NOT NULL,
            lease bigint NOT NULL CHECK (lease BETWEEN 1 AND 3600000),
            seen bigint NOT NULL,
            applied bigint NOT NULL,
            clock_offset bigint NOT NULL
        ) WITH (fillfactor = 50);

        -- The notification is a hint: a node that misses it reads the numbers with its next lease.
        CREATE FUNCTION notify_nodes() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            PERFORM pg_notify('countersign', '');
            RETURN NULL;
        END $$;
        CREATE TRIGGER session_change_notifies AFTER UPDATE ON session_change
            FOR EACH STATEMENT EXECUTE FUNCTION notify_nodes();
        CREATE TRIGGER generation_notifies AFTER UPDATE ON generation
            FOR EACH STATEMENT EXECUTE FUNCTION notify_nodes();

        CREATE FUNCTION advance_generation() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            UPDATE countersign.generation SET number = number + 1;
            RETURN NULL;
        END $$;
        CREATE TRIGGER revision_advances AFTER UPDATE ON revision
            FOR EACH STATEMENT EXECUTE FUNCTION advance_generation();
        -- Of an account, nodes keep its name and user id with each session in use.
        CREATE TRIGGER account_update_advances AFTER UPDATE ON account FOR EACH ROW
            WHEN (OLD.name <> NEW.name OR OLD.state <> NEW.state OR OLD.user_id IS DISTINCT FROM NEW.user_id
                OR OLD.pseudonym IS DISTINCT FROM NEW.pseudonym)
            EXECUTE FUNCTION advance_generation();
        CREATE TRIGGER account_delete_advances AFTER DELETE ON account
            FOR EACH STATEMENT EXECUTE FUNCTION advance_generation();
        \(MetaName.followed)
        """

    /// What builds of earlier levels go by (``PostgreSQLLayout``).
    private static let levelRecord = """
        -- What the level's build says of it, sealed.
        ALTER TABLE layout ADD COLUMN record bytea;
        -- Read under the lock of those who write, which a migration holds.
        ALTER TABLE writing ADD COLUMN level bigint NOT NULL DEFAULT 0;
        ALTER TABLE node ADD COLUMN level bigint NOT NULL DEFAULT 0;
        """

    /// What a node says of its master key (`NodeMasterKey`); empty for a node of an earlier level.
    private static let masterKeys = """
        ALTER TABLE node ADD COLUMN master_key utf8 NOT NULL DEFAULT '';
        """

    private static let usage = """
        CREATE FUNCTION count_usage() RETURNS trigger LANGUAGE plpgsql AS $$
        DECLARE
            request idempotent_request := coalesce(NEW, OLD);
            owners bytea[] := ARRAY[request.scope::bytea,
                substr(request.scope, 1, position(' '::bytea in request.scope::bytea) - 1)];
            had bigint := 0;
            has bigint := 0;
        BEGIN
            IF request.network IS NOT NULL THEN owners := owners || request.network::bytea; END IF;
            IF TG_OP <> 'INSERT' THEN
                had := coalesce(octet_length(OLD.fields), 0) + coalesce(octet_length(OLD.body), 0);
            END IF;
            IF TG_OP <> 'DELETE' THEN
                has := coalesce(octet_length(NEW.fields), 0) + coalesce(octet_length(NEW.body), 0);
            END IF;
            IF TG_OP = 'INSERT' THEN
                INSERT INTO idempotent_use SELECT owner, 1, has FROM unnest(owners) AS owner
                    ON CONFLICT (owner) DO UPDATE
                    SET keys = idempotent_use.keys + 1, bytes = idempotent_use.bytes + excluded.bytes;
            ELSIF TG_OP = 'UPDATE' THEN
                UPDATE idempotent_use SET bytes = bytes + has - had WHERE owner = ANY (owners);
            ELSE
                UPDATE idempotent_use SET keys = keys - 1, bytes = bytes - had WHERE owner = ANY (owners);
                DELETE FROM idempotent_use
                    WHERE owner IN (request.scope, request.network) AND keys = 0;
            END IF;
            RETURN NULL;
        END $$;
        CREATE TRIGGER idempotent_request_counted AFTER INSERT OR DELETE OR UPDATE OF fields, body
            ON idempotent_request FOR EACH ROW EXECUTE FUNCTION count_usage();
        """

    /// They prevent mistakes by other programs; the tags detect what is done on purpose.
    private static let guards = """
        CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            RAISE EXCEPTION 'the audit log is only added to';
        END $$;
        CREATE TRIGGER audit_is_not_altered BEFORE UPDATE ON audit
            FOR EACH ROW EXECUTE FUNCTION refuse_change();
        CREATE TRIGGER audit_is_not_cut BEFORE DELETE ON audit
            FOR EACH ROW EXECUTE FUNCTION refuse_change();
        CREATE TRIGGER audit_is_not_emptied BEFORE TRUNCATE ON audit
            FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

        CREATE FUNCTION forget_upload_tickets() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            DELETE FROM upload_ticket WHERE session = OLD.id;
            RETURN NULL;
        END $$;
        CREATE TRIGGER upload_ticket_of_forgotten_session AFTER DELETE ON session
            FOR EACH ROW EXECUTE FUNCTION forget_upload_tickets();
        """

    /// While the master key is replaced, each new sealed value must have the first byte that `seal-slot`
    /// holds; one that the row had already, in whichever column, may stay (decision 0059).
    private static let sealing = """
        CREATE FUNCTION refuse_former_key() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            RAISE EXCEPTION 'sealed under the former master key' USING ERRCODE = 'CS001';
        END $$;
        CREATE FUNCTION has_former_key(bytea) RETURNS boolean LANGUAGE sql STABLE AS
            'SELECT substr($1, 1, 1) IS DISTINCT FROM (SELECT value FROM countersign.meta \
        WHERE name = ''seal-slot'')';
        \(sealed("app_setting", columns: "sealed"))
        \(sealed("release", columns: "sealed_secret", "sealed_next_secret"))
        \(sealed("account", columns: "sealed_record", "sealed_legacy"))
        \(sealed("session", columns: "sealed_root", "sealed_previous_root", "next_sealed_root"))
        \(sealed("idempotent_request", columns: "body"))
        \(sealed("meta", columns: "value", of: Migrations.sealedNames))
        """

    private static func sealed(_ table: String, columns: String..., of condition: String = "true") -> String {
        let had = columns.map { "coalesce(OLD.\($0), '')" }.joined(separator: ", ")
        func isWrong(_ column: String) -> String {
            "octet_length(NEW.\(column)) > 0 AND has_former_key(NEW.\(column))"
        }
        let inserted = columns.map { "(\(isWrong($0)))" }.joined(separator: " OR ")
        let updated = columns.map { "(NEW.\($0) NOT IN (\(had)) AND \(isWrong($0)))" }
            .joined(separator: " OR ")
        return """
            CREATE TRIGGER \(table)_insert_is_sealed BEFORE INSERT ON \(table) FOR EACH ROW
                WHEN (\(condition) AND (\(inserted))) EXECUTE FUNCTION refuse_former_key();
            CREATE TRIGGER \(table)_update_is_sealed BEFORE UPDATE OF \(columns.joined(separator: ", "))
                ON \(table) FOR EACH ROW
                WHEN (\(condition) AND (\(updated))) EXECUTE FUNCTION refuse_former_key();
            """
    }
}

extension AuthenticatedTable {
    /// Triggers that hand each row that is written to the connection that writes it.
    fileprivate var postgreSQLTriggers: String {
        let (new, old) = (condition("NEW.").map { "WHEN (\($0))" }, condition("OLD.").map { "WHEN (\($0))" })
        func trigger(_ event: String, when condition: String?) -> String {
            let name = event.prefix { $0 != " " }.lowercased()
            return """
                CREATE TRIGGER row_\(name) AFTER \(event) ON \(self.name) FOR EACH ROW \(condition ?? "")
                    EXECUTE FUNCTION hand_over_\(self.name)();
                """
        }
        return """
            CREATE FUNCTION hand_over_\(name)() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                IF to_regclass('pg_temp.row_change') IS NULL THEN
                    RAISE EXCEPTION 'rows of % are written by countersign alone', TG_TABLE_NAME;
                END IF;
                INSERT INTO pg_temp.row_change (old, new) VALUES (
                    CASE WHEN TG_OP <> 'INSERT' THEN \(taggedEncoding(of: "OLD.")) END,
                    CASE WHEN TG_OP <> 'DELETE' THEN \(taggedEncoding(of: "NEW.")) END);
                RETURN NULL;
            END $$;
            \(trigger("INSERT", when: new))
            \(trigger("UPDATE OF \(list())", when: new))
            \(trigger("DELETE", when: old))
            """
    }
}

extension MetaName {
    /// Values that no node keeps in memory, or that change with each audit record.
    private static let unfollowed: [MetaName] = [.auditHead, .replayFile, .meterBegan, .writeCheck]

    /// Triggers on those that nodes keep in memory.
    fileprivate static var followed: String {
        let names = unfollowed.map { "'\($0.rawValue)'" }.joined(separator: ", ")
        func trigger(_ event: String, on row: String) -> String {
            """
            CREATE TRIGGER meta_\(event.lowercased())_advances AFTER \(event) ON meta FOR EACH ROW
                WHEN (\(row).name NOT IN (\(names))) EXECUTE FUNCTION advance_generation();
            """
        }
        return [trigger("INSERT", on: "NEW"), trigger("UPDATE", on: "NEW"), trigger("DELETE", on: "OLD")]
            .joined(separator: "\n")
    }
}
