import CountersignAuthority
import CountersignGate
import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Reads and writes rows of the table of sessions.
enum SessionRows {
    private static let columns = """
        session.change, session.id, session.account, session.app, session.platform, session.device_class,
        session.device_name, session.created, session.used, session.ended_at, session.end_reason,
        session.ended_by, session.signing_key, session.agreement_key, session.epoch, session.epoch_began,
        session.sealed_root, session.sealed_previous_root, session.attempts, session.next_sealed_root,
        session.next_ephemeral, session.next_attempts, session.token_hash, session.token_expires,
        session.previous_token_hash, session.login_token_hash, session.token_issued,
        session.previous_login_token_hash, session.release, session.opening, session.key_storage,
        session.refresh_counter, session.refresh_digest, session.epoch_release, session.previous_release,
        session.next_release
        """
    /// The place of ``AuthenticatedTable/check`` behind `columns`.
    private static let checkColumn: Int32 = 36

    static let select = select(from: "session")
    /// The same without a check of the rows, for ``SessionStore/sessions(changedAfter:limit:)``.
    static let selectUnverified = "SELECT \(columns), 1 FROM session"

    /// `source` is a constant, never a value.
    static func select(from source: StaticString) -> String {
        "SELECT \(columns), \(AuthenticatedTable.session.check) FROM \(source)"
    }

    /// Throws if the row is not authentic.
    static func session(_ id: SessionID, in database: Database) throws(OperationalError) -> StoredSession? {
        let sql = "\(select) WHERE id = ?"
        if let session = try read(in: database, sql: sql, binding: .blob(id.bytes)).first { return session }
        let exists = try database.integer("SELECT 1 FROM session WHERE id = ?", binding: .blob(id.bytes))
        if exists != nil { throw SQLStore.altered(.session, row: id.description, in: database) }
        return nil
    }

    static func live(of account: Int64, in database: Database) throws(OperationalError) -> [StoredSession] {
        try read(
            in: database, sql: "\(select) WHERE account = ? AND ended_at IS NULL ORDER BY created, id",
            binding: .integer(account))
    }

    static func countLive(of account: Int64, in database: Database) throws(OperationalError) -> Int {
        Int(
            try database.integer(
                "SELECT count(*) FROM session WHERE account = ? AND ended_at IS NULL",
                binding: .integer(account)) ?? 0)
    }

    /// `sql` begins with ``select``. Rows that are not authentic are left out: they cannot be used, and must
    /// not keep the account's other sessions from being read.
    static func read(in database: Database, sql: String, binding values: SQLValue...) throws(OperationalError)
        -> [StoredSession]
    {
        try list(in: database, sql: sql, binding: values).compactMap(\.row)
    }

    /// The same with altered rows in their places. `sql` begins with ``select``.
    static func list(in database: Database, sql: String, binding values: [SQLValue]) throws(OperationalError)
        -> [ListedRow<StoredSession>]
    {
        var names = SessionNameCache()
        return try database.rows(sql, binding: values) { (row) throws(OperationalError) in
            guard row.isAuthentic(checkColumn) else {
                let id = row.sessionID(1)?.description ?? "?"
                return .altered(AlteredRow(.session, row: id, account: row.integer(2)))
            }
            guard let session = session(from: row, names: &names) else {
                throw ReleaseRows.unreadable("session, change", named: String(row.integer(0)), in: database)
            }
            return .row(session)
        }
    }

    /// `sql` returns ids.
    static func ids(in database: Database, sql: String, binding values: SQLValue...) throws(OperationalError)
        -> [SessionID]
    {
        try database.rows(sql, binding: values) { (row) throws(OperationalError) in
            guard let id = row.sessionID(0) else {
                throw ReleaseRows.unreadable("session", named: "?", in: database)
            }
            return id
        }
    }

    private static func session(from row: borrowing Statement, names: inout SessionNameCache)
        -> StoredSession?
    {
        guard let id = row.sessionID(1), let app = names.app(row.text(3)),
            let platform = names.platform(row.text(4)),
            let deviceClass = Device.Class(rawValue: row.text(5)),
            var credentials = SessionCredentialColumns.read(row, from: 12)
        else { return nil }
        if case .device(var device) = credentials {
            guard RefreshColumns.read(row, from: 31, into: &device, names: &names) else { return nil }
            credentials = .device(device)
        }
        var session = StoredSession(
            id: id, account: row.integer(2), app: app, platform: platform, deviceClass: deviceClass,
            deviceName: row.text(6), created: row.integer(7), credentials: credentials)
        if !row.isNull(28) {
            guard let release = names.release(row.text(28)) else { return nil }
            session.release = release
        }
        guard let opening = Session.LoginKind(rawValue: row.text(29)) else { return nil }
        session.opening = opening
        // A later version may have written a word that this one does not know.
        session.keyStorage = row.isNull(30) ? nil : KeyStorage(rawValue: row.text(30))
        session.used = row.integer(8)
        session.change = row.integer(0)
        if !row.isNull(9) {
            guard let reason = SessionTermination.Reason(rawValue: row.text(10)) else { return nil }
            session.end = SessionTermination(
                reason, at: row.integer(9), by: row.isNull(11) ? nil : row.text(11))
        }
        return session
    }

    static func insert(_ session: StoredSession, in database: Database) throws(OperationalError) {
        try database.run(
            """
            INSERT INTO session (
                change, id, account, app, platform, device_class, device_name, created, used, ended_at,
                end_reason, ended_by, signing_key, agreement_key, epoch, epoch_began, sealed_root,
                sealed_previous_root, attempts, next_sealed_root, next_ephemeral, next_attempts,
                token_hash, token_expires, previous_token_hash, login_token_hash, token_issued,
                previous_login_token_hash, release, opening, key_storage, refresh_counter, refresh_digest,
                epoch_release, previous_release, next_release)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
                ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            binding: [
                .integer(session.change), .blob(session.id.bytes), .integer(session.account),
                .text(session.app.description), .text(session.platform.description),
                .text(session.deviceClass.rawValue), .text(session.deviceName), .integer(session.created),
                .integer(session.used), .optional(session.end?.at), .optional(session.end?.reason.rawValue),
                .optional(session.end?.by),
            ] + SessionCredentialColumns.values(session.credentials) + [
                .optional(session.release?.description), .text(session.opening.rawValue),
                .optional(session.keyStorage?.rawValue),
            ] + RefreshColumns.values(session.credentials))
    }

    /// Replaces the session's credentials, use, release and change number; the other columns stay.
    static func replace(_ session: StoredSession, in database: Database) throws(OperationalError) {
        try database.run(
            """
            UPDATE session SET
                signing_key = ?, agreement_key = ?, epoch = ?, epoch_began = ?, sealed_root = ?,
                sealed_previous_root = ?, attempts = ?, next_sealed_root = ?, next_ephemeral = ?,
                next_attempts = ?, token_hash = ?, token_expires = ?, previous_token_hash = ?,
                login_token_hash = ?, token_issued = ?, previous_login_token_hash = ?,
                change = ?, used = ?, release = ?, refresh_counter = ?, refresh_digest = ?,
                epoch_release = ?, previous_release = ?, next_release = ?
            WHERE id = ?
            """, changing: "session \(session.id)",
            binding: SessionCredentialColumns.values(session.credentials) + [
                .integer(session.change), .integer(session.used), .optional(session.release?.description),
            ] + RefreshColumns.values(session.credentials) + [.blob(session.id.bytes)])
    }
}

/// The five columns from `refresh_counter` to `next_release`.
enum RefreshColumns {
    private static let nullBearer = [SQLValue](repeating: .null, count: 5)

    static func values(_ credentials: StoredSession.Credentials) -> [SQLValue] {
        guard case .device(let device) = credentials else { return nullBearer }
        return [
            device.counter > 0 ? .integer(device.counter) : .null, .optional(device.counterDigest),
            .optional(device.release?.description), .optional(device.previousRelease?.description),
            .optional(device.successor?.release?.description),
        ]
    }

    /// From the columns from `first` on; false if they cannot be read.
    static func read(
        _ row: borrowing Statement, from first: Int32, into device: inout DeviceCredentials,
        names: inout SessionNameCache
    ) -> Bool {
        if !row.isNull(first) {
            device.counter = row.integer(first)
            device.counterDigest = row.blob(first + 1)
        }
        var releases: [KeyID?] = []
        for column in first + 2...first + 4 {
            guard !row.isNull(column) else {
                releases.append(nil)
                continue
            }
            guard let release = names.release(row.text(column)) else { return false }
            releases.append(release)
        }
        (device.release, device.previousRelease) = (releases[0], releases[1])
        device.successor?.release = releases[2]
        return true
    }
}

/// Names that many sessions share, validated once each and not once per session.
struct SessionNameCache {
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

/// A session's credentials as the sixteen columns from `signing_key` to `previous_login_token_hash`.
enum SessionCredentialColumns {
    private static let nullDevice = [SQLValue](repeating: .null, count: 10)
    private static let nullBearer = [SQLValue](repeating: .null, count: 6)

    static func values(_ credentials: StoredSession.Credentials) -> [SQLValue] {
        switch credentials {
        case .device(let device):
            let next = device.successor
            return [
                .blob(device.signingKey), .blob(device.agreementKey), .integer(Int64(device.epoch)),
                .integer(device.epochBegan), .blob(device.sealedRoot), .optional(device.sealedPreviousRoot),
                .blob(ByteStringList.encode(device.attempts)), .optional(next?.sealedRoot),
                .optional(next?.ephemeral),
                .optional(next.map { ByteStringList.encode($0.attempts) }),
            ] + nullBearer
        case .bearer(let bearer):
            return nullDevice + [
                .blob(bearer.tokenHash), .integer(bearer.tokenExpires), .optional(bearer.previousTokenHash),
                .blob(bearer.loginTokenHash), .integer(bearer.issued),
                .optional(bearer.previousLoginTokenHash),
            ]
        }
    }

    /// From the columns from `first` on; nil if they cannot be read.
    static func read(_ row: borrowing Statement, from first: Int32) -> StoredSession.Credentials? {
        guard row.isNull(first) else { return device(row, from: first).map { .device($0) } }
        var bearer = BearerCredentials(
            tokenHash: row.blob(first + 10), tokenExpires: row.integer(first + 11),
            issued: row.integer(first + 14),
            loginTokenHash: row.blob(first + 13))
        bearer.previousTokenHash = row.isNull(first + 12) ? nil : row.blob(first + 12)
        bearer.previousLoginTokenHash = row.isNull(first + 15) ? nil : row.blob(first + 15)
        return .bearer(bearer)
    }

    private static func device(_ row: borrowing Statement, from first: Int32) -> DeviceCredentials? {
        guard let epoch = UInt32(exactly: row.integer(first + 2)),
            let attempts = ByteStringList.decode(row.blob(first + 6))
        else { return nil }
        var device = DeviceCredentials(
            signingKey: row.blob(first), agreementKey: row.blob(first + 1),
            epochBegan: row.integer(first + 3),
            sealedRoot: row.blob(first + 4))
        device.epoch = epoch
        device.sealedPreviousRoot = row.isNull(first + 5) ? nil : row.blob(first + 5)
        device.attempts = attempts
        if !row.isNull(first + 7) {
            guard let tried = ByteStringList.decode(row.blob(first + 9)) else { return nil }
            device.successor = DeviceCredentials.Successor(
                sealedRoot: row.blob(first + 7), ephemeral: row.blob(first + 8), attempts: tried)
        }
        return device
    }
}

/// Several byte strings in one blob, each after its length in four bytes, big-endian.
enum ByteStringList {
    static func encode(_ strings: [[UInt8]]) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(strings.reduce(0) { $0 + 4 + $1.count })
        for string in strings {
            let count = UInt32(truncatingIfNeeded: string.count)
            for shift in [24, 16, 8, 0] as [UInt32] {
                bytes.append(UInt8(truncatingIfNeeded: count >> shift))
            }
            bytes += string
        }
        return bytes
    }

    /// Nil if it is not what ``encode(_:)`` writes.
    static func decode(_ bytes: [UInt8]) -> [[UInt8]]? {
        var strings: [[UInt8]] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            guard rest.count >= 4 else { return nil }
            let count = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
            rest = rest.dropFirst(4)
            guard rest.count >= count else { return nil }
            strings.append(Array(rest.prefix(count)))
            rest = rest.dropFirst(count)
        }
        return strings
    }
}
