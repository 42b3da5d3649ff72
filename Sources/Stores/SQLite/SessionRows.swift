import CountersignAuthority
import CountersignGate
import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Rows of the table of sessions, read as values and written from them.
enum SessionRows {
    private static let columns = """
        session.change, session.id, session.account, session.app, session.platform, session.device_class,
        session.device_name, session.created, session.used, session.ended_at, session.end_reason, session.ended_by,
        session.signing_key, session.agreement_key, session.epoch, session.epoch_began, session.sealed_root,
        session.sealed_previous_root, session.attempts, session.next_sealed_root, session.next_ephemeral,
        session.next_attempts, session.token_hash, session.token_expires, session.previous_token_hash,
        session.login_token_hash, session.token_issued, session.previous_login_token_hash, session.release,
        session.opening, session.key_storage
        """

    static let select = select(from: "session")

    /// `source` is a name of ours, never a value.
    static func select(from source: StaticString) -> String { "SELECT \(columns) FROM \(source)" }

    static func session(_ id: SessionID, in database: Database) throws(Fault) -> StoredSession? {
        try read(database, "\(select) WHERE id = ?", .blob(id.bytes)).first
    }

    static func live(of account: Int64, in database: Database) throws(Fault) -> [StoredSession] {
        try read(
            database, "\(select) WHERE account = ? AND ended_at IS NULL ORDER BY created, id", .integer(account))
    }

    static func countLive(of account: Int64, in database: Database) throws(Fault) -> Int {
        Int(
            try database.integer(
                "SELECT count(*) FROM session WHERE account = ? AND ended_at IS NULL", .integer(account)) ?? 0)
    }

    /// `sql` begins with ``select``.
    static func read(_ database: Database, _ sql: String, _ values: SQLValue...) throws(Fault) -> [StoredSession] {
        var names = SessionNames()
        return try database.rows(sql, values) { (row) throws(Fault) in
            guard let session = session(row, &names) else {
                throw Rows.unreadable("session, change", String(row.integer(0)), database)
            }
            return session
        }
    }

    /// `sql` answers ids.
    static func ids(_ database: Database, _ sql: String, _ values: SQLValue...) throws(Fault) -> [SessionID] {
        try database.rows(sql, values) { (row) throws(Fault) in
            guard let id = row.sessionID(0) else { throw Rows.unreadable("session", "?", database) }
            return id
        }
    }

    private static func session(_ row: borrowing Statement, _ names: inout SessionNames) -> StoredSession? {
        guard let id = row.sessionID(1), let app = names.app(row.text(3)), let platform = names.platform(row.text(4)),
            let deviceClass = Device.Class(rawValue: row.text(5)),
            let credentials = SessionCredentials.read(row, from: 12)
        else { return nil }
        var session = StoredSession(
            id: id, account: row.integer(2), app: app, platform: platform, deviceClass: deviceClass,
            deviceName: row.text(6), created: row.integer(7), credentials: credentials)
        if !row.isNull(28) {
            guard let release = names.release(row.text(28)) else { return nil }
            session.release = release
        }
        guard let opening = Session.Opening(rawValue: row.text(29)) else { return nil }
        session.opening = opening
        // A word that a later version wrote is one that this one does not know.
        session.keyStorage = row.isNull(30) ? nil : KeyStorage(rawValue: row.text(30))
        session.used = row.integer(8)
        session.change = row.integer(0)
        if !row.isNull(9) {
            guard let reason = SessionEnd.Reason(rawValue: row.text(10)) else { return nil }
            session.end = SessionEnd(reason, at: row.integer(9), by: row.isNull(11) ? nil : row.text(11))
        }
        return session
    }

    static func insert(_ session: StoredSession, in database: Database) throws(Fault) {
        try database.run(
            """
            INSERT INTO session (
                change, id, account, app, platform, device_class, device_name, created, used, ended_at, end_reason,
                ended_by, signing_key, agreement_key, epoch, epoch_began, sealed_root, sealed_previous_root, attempts,
                next_sealed_root, next_ephemeral, next_attempts, token_hash, token_expires, previous_token_hash,
                login_token_hash, token_issued, previous_login_token_hash, release, opening, key_storage)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            [
                .integer(session.change), .blob(session.id.bytes), .integer(session.account),
                .text(session.app.description), .text(session.platform.description),
                .text(session.deviceClass.rawValue), .text(session.deviceName), .integer(session.created),
                .integer(session.used), .optional(session.end?.at), .optional(session.end?.reason.rawValue),
                .optional(session.end?.by),
            ] + SessionCredentials.values(session.credentials) + [
                .optional(session.release?.description), .text(session.opening.rawValue),
                .optional(session.keyStorage?.rawValue),
            ])
    }

    /// Its credentials, its use, its release and the number of this change; the rest stays as it is.
    static func replace(_ session: StoredSession, in database: Database) throws(Fault) {
        try database.run(
            """
            UPDATE session SET
                signing_key = ?, agreement_key = ?, epoch = ?, epoch_began = ?, sealed_root = ?,
                sealed_previous_root = ?, attempts = ?, next_sealed_root = ?, next_ephemeral = ?, next_attempts = ?,
                token_hash = ?, token_expires = ?, previous_token_hash = ?, login_token_hash = ?, token_issued = ?,
                previous_login_token_hash = ?, change = ?, used = ?, release = ?
            WHERE id = ?
            """,
            SessionCredentials.values(session.credentials) + [
                .integer(session.change), .integer(session.used), .optional(session.release?.description),
                .blob(session.id.bytes),
            ])
    }
}

/// Names that many sessions share, checked once for each and not once for each session.
struct SessionNames {
    private var apps: [String: AppName] = [:]
    private var platforms: [String: Platform] = [:]
    private var releases: [String: KeyID] = [:]

    mutating func app(_ text: String) -> AppName? {
        if let known = apps[text] { return known }
        guard let name = AppName(text) else { return nil }
        apps[text] = name
        return name
    }

    mutating func platform(_ text: String) -> Platform? {
        if let known = platforms[text] { return known }
        guard let name = Platform(text) else { return nil }
        platforms[text] = name
        return name
    }

    mutating func release(_ text: String) -> KeyID? {
        if let known = releases[text] { return known }
        guard let id = KeyID(text) else { return nil }
        releases[text] = id
        return id
    }
}
