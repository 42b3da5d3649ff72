import CountersignAuthority
import CountersignWire

/// What a new connection finds of the tables of admitted requests.
package struct ReplayEntryView: Sendable {
    package let source: ReplayDataSet
    /// The position up to which the write-ahead log is durable: a crash does not set it back.
    package let flushed: Int64
    /// The server's clock, in whole Unix seconds.
    package let time: Int64
    /// The store's values ``MetaName/replayFile`` and ``MetaName/replayEpoch``.
    package let mark, record: [UInt8]?
    /// The epoch's token that the tables have.
    package var token: String?
    /// The minutes that have a table.
    package var minutes: Set<Int64> = []
}

/// The tables of admitted requests, in the schema `countersign_replay`: one for each minute of the signed
/// creation time, dropped whole. Confined to a thread, which waits for the server within bounds.
///
/// A minute's table is made once: `state.used` has the minutes of all tables that were ever made, so that one
/// that was dropped is never there again without its entries. No clock is trusted for that.
package final class ReplayEntryDatabase {
    static let patience = PostgreSQLConnection.Patience(
        connecting: 1_000, statement: 1_000, answer: 1_500, reading: 1_500)
    /// The number of the lock under which tables are made and dropped.
    private static let lock = 4_850_255
    private static let mostDropped = 16

    private let database: Database

    /// Opens a new connection: a node must not stay with a server that new connections do not reach.
    package init(to address: PostgreSQLAddress) throws(OperationalError) {
        database = Database(try PostgreSQLConnection(to: address, patience: ReplayEntryDatabase.patience))
    }

    package func view() throws(OperationalError) -> ReplayEntryView {
        let sql = """
            SELECT \(ReplayEntryDatabase.sourceColumns),
                (pg_current_wal_flush_lsn() - '0/0')::bigint,
                floor(extract(epoch FROM clock_timestamp()))::bigint,
                (SELECT value FROM countersign.meta WHERE name = '\(MetaName.replayFile.rawValue)'),
                (SELECT value FROM countersign.meta WHERE name = '\(MetaName.replayEpoch.rawValue)')
            """
        let views = try database.rows(sql) {
            ReplayEntryView(
                source: ReplayDataSet(server: $0.text(0), history: $0.text(1)), flushed: $0.integer(2),
                time: $0.integer(3), mark: $0.isNull(4) ? nil : $0.blob(4),
                record: $0.isNull(5) ? nil : $0.blob(5))
        }
        guard var view = views.first else {
            throw OperationalError(.failed, message: "\(database.path): no state of the server")
        }
        try requireOwnTables()
        guard try hasState() else { return view }
        view.token = try database.rows("SELECT epoch FROM countersign_replay.state") { $0.text(0) }.first
        view.minutes = try minutes()
        return view
    }

    /// Throws if another user owns the schema or a table in it, or if there is a trigger or a rule, which
    /// would run with the rights of this user.
    private func requireOwnTables() throws(OperationalError) {
        let count = try database.integer(
            """
            SELECT (SELECT count(*) FROM pg_class
                WHERE relnamespace = to_regnamespace('countersign_replay') AND relkind <> 'i'
                    AND (relowner <> current_user::regrole OR relhastriggers OR relhasrules
                        OR relkind <> 'r'))
                + (SELECT count(*) FROM pg_namespace
                    WHERE nspname = 'countersign_replay' AND nspowner <> current_user::regrole)
            """)
        guard count == 0 else {
            throw OperationalError(
                .failed,
                message: "\(database.path): the schema countersign_replay has what is not of this user, or a "
                    + "trigger or rule; expected tables of its own alone")
        }
    }

    private func hasState() throws(OperationalError) -> Bool {
        try database.integer("SELECT (to_regclass('countersign_replay.state') IS NOT NULL)::int") == 1
    }

    package func minutes() throws(OperationalError) -> Set<Int64> {
        let names = try database.rows(
            """
            SELECT convert_to(relname, 'UTF8') FROM pg_class
            WHERE relnamespace = to_regnamespace('countersign_replay') AND relkind = 'r'
            """
        ) { $0.text(0) }
        return Set(names.compactMap { $0.hasPrefix("m") ? Int64($0.dropFirst()) : nil })
    }

    /// Has the tables be of the epoch with that token, if the store has `record`, of that epoch, still.
    package func adopt(_ token: String, of record: [UInt8]) throws(OperationalError) {
        try database.execute(
            """
            SELECT pg_advisory_xact_lock(\(ReplayEntryDatabase.lock));
            CREATE SCHEMA IF NOT EXISTS countersign_replay;
            CREATE TABLE IF NOT EXISTS countersign_replay.state
                (epoch bytea NOT NULL, used int4multirange NOT NULL);
            INSERT INTO countersign_replay.state
                SELECT ''::bytea, '{}'::int4multirange WHERE NOT EXISTS (SELECT FROM countersign_replay.state)
            """)
        try database.run(
            """
            UPDATE countersign_replay.state SET epoch = ?1 WHERE EXISTS (
                SELECT FROM countersign.meta
                WHERE name = '\(MetaName.replayEpoch.rawValue)' AND value = ?2)
            """, binding: .blob(Array(token.utf8)), .blob(record))
    }

    /// Makes the tables of these minutes, but for those that were there once.
    package func make(_ minutes: [Int64]) throws(OperationalError) {
        try run(
            """
            PERFORM pg_advisory_xact_lock(\(ReplayEntryDatabase.lock));
            FOREACH minute IN ARRAY \(ReplayEntryDatabase.array(minutes)) LOOP
                UPDATE countersign_replay.state
                    SET used = used + int4multirange(int4range(minute, minute + 1)) WHERE NOT used @> minute;
                IF FOUND THEN
                    EXECUTE format('CREATE TABLE countersign_replay.m%s (name uuid PRIMARY KEY)
                        WITH (autovacuum_enabled = off)', minute);
                END IF;
            END LOOP;
            """)
    }

    /// Drops the tables of these minutes, unless another node makes or drops some just now. A table that is
    /// in use for long, by `pg_dump` for example, is left for the next time.
    package func drop(_ minutes: [Int64]) throws(OperationalError) {
        let minutes = ReplayEntryDatabase.array(minutes.prefix(ReplayEntryDatabase.mostDropped))
        try run(
            """
            IF NOT pg_try_advisory_xact_lock(\(ReplayEntryDatabase.lock)) THEN RETURN; END IF;
            SET LOCAL lock_timeout = 50;
            FOREACH minute IN ARRAY \(minutes) LOOP
                BEGIN
                    EXECUTE format('DROP TABLE IF EXISTS countersign_replay.m%s', minute);
                EXCEPTION WHEN lock_not_available THEN NULL;
                END;
            END LOOP;
            """)
    }

    private func run(_ body: String) throws(OperationalError) {
        try database.execute("DO $body$ DECLARE minute integer; BEGIN \(body) END $body$")
    }

    private static func array(_ minutes: some Sequence<Int64>) -> String {
        "'{\(minutes.map(String.init).joined(separator: ","))}'::integer[]"
    }

    private static let sourceColumns = """
        (SELECT convert_to(to_hex(system_identifier), 'UTF8') FROM pg_control_system()),
        convert_to(lower(substr(pg_walfile_name(pg_current_wal_flush_lsn()), 1, 8)), 'UTF8')
        """

    static func source(on connection: PostgreSQLConnection) throws(OperationalError) -> ReplayDataSet {
        let sources = try Database(connection).rows("SELECT \(sourceColumns)") {
            ReplayDataSet(server: $0.text(0), history: $0.text(1))
        }
        guard let source = sources.first else { throw connection.lost("no state of the server") }
        return source
    }
}
