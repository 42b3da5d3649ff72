import CountersignAuthority
import CountersignGate
import CountersignHandshake
import CountersignSchemes
import CountersignWire

/// Reads the columns of a session that ``SessionOutline`` has. Reads no blob but the id and a bearer
/// session's hashes, and makes no string of a name that one of the last rows had, too.
struct SessionOutlineRows {
    private static let sql = """
        SELECT change, id, account, app, platform, created, used, ended_at, end_reason, ended_by, epoch,
            epoch_began, sealed_previous_root IS NOT NULL, next_sealed_root IS NOT NULL, opening,
            epoch_release, token_hash, token_expires, token_issued, previous_token_hash,
            previous_login_token_hash IS NOT NULL
        FROM session WHERE change > ? ORDER BY change LIMIT ?
        """

    /// Rows that room is made for before they are read.
    private static let mostReserved = 4_096

    private var apps = RepeatedText<AppName>()
    private var platforms = RepeatedText<Platform>()
    private var releases = RepeatedText<KeyID>()
    private var openings = RepeatedText<Session.LoginKind>()
    private var reasons = RepeatedText<SessionTermination.Reason>()

    static func read(
        changedAfter change: Int64, limit: Int, in database: Database
    ) throws(OperationalError) -> [SessionOutline] {
        var reader = SessionOutlineRows()
        return try database.rows(
            sql, binding: [.integer(change), .integer(Int64(limit))],
            reserving: min(limit, SessionOutlineRows.mostReserved)
        ) { (row) throws(OperationalError) in
            guard let outline = reader.outline(from: row) else {
                throw ReleaseRows.unreadable("session, change", named: String(row.integer(0)), in: database)
            }
            return outline
        }
    }

    private mutating func outline(from row: borrowing Statement) -> SessionOutline? {
        guard let id = row.sessionID(1), let app = apps.value(of: row, column: 3, parse: { AppName($0) }),
            let platform = platforms.value(of: row, column: 4, parse: { Platform($0) }),
            let opening = openings.value(of: row, column: 14, parse: { Session.LoginKind(rawValue: $0) }),
            let credentials = row.isNull(16) ? device(from: row) : bearer(from: row)
        else { return nil }
        var end: SessionTermination?
        if !row.isNull(7) {
            guard
                let reason = reasons.value(
                    of: row, column: 8, parse: { SessionTermination.Reason(rawValue: $0) })
            else { return nil }
            end = SessionTermination(reason, at: row.integer(7), by: row.isNull(9) ? nil : row.text(9))
        }
        return SessionOutline(
            id: id, account: row.integer(2), app: app, platform: platform, created: row.integer(5),
            used: row.integer(6), change: row.integer(0), end: end, opening: opening,
            credentials: credentials)
    }

    private mutating func device(from row: borrowing Statement) -> SessionOutline.Credentials? {
        guard let epoch = UInt32(exactly: row.integer(10)) else { return nil }
        var release: KeyID?
        if !row.isNull(15) {
            release = releases.value(of: row, column: 15) { KeyID($0) }
            guard release != nil else { return nil }
        }
        return .device(
            DeviceCredentialOutline(
                epoch: epoch, epochBegan: row.integer(11), release: release,
                hasPreviousRoot: row.integer(12) != 0, hasSuccessor: row.integer(13) != 0))
    }

    private func bearer(from row: borrowing Statement) -> SessionOutline.Credentials? {
        .bearer(
            BearerCredentialOutline(
                issued: row.integer(18), tokenExpires: row.integer(17),
                tokenHashes: SessionSecret(row.blob(16) + row.blob(19)), hasPreviousToken: !row.isNull(19),
                hasPreviousLoginToken: row.integer(20) != 0))
    }
}

/// What a column's texts mean, for the last few of them: most rows have one of a few.
private struct RepeatedText<Value> {
    private static var most: Int { 8 }

    private var known: [(text: [UInt8], value: Value)] = []
    private var next = 0

    /// Nil if `parse` does not accept the text.
    mutating func value(
        of row: borrowing Statement, column: Int32, parse: (String) -> Value?
    ) -> Value? {
        for entry in known where row.hasText(entry.text, in: column) { return entry.value }
        guard let value = parse(row.text(column)) else { return nil }
        let entry = (row.blob(column), value)
        if known.count < RepeatedText.most { known.append(entry) } else { known[next] = entry }
        next = (next + 1) % RepeatedText.most
        return value
    }
}
