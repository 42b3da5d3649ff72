import CountersignAuthority
import CountersignGate
import CountersignHandshake
import CountersignSchemes
import CountersignWire

extension SQLStore {
    package func open(
        _ session: StoredSession, proving credential: [UInt8]?, slots: SlotRule, at now: Int64
    ) throws(OperationalError) -> SessionOpenOutcome {
        try write { (database) throws(OperationalError) in
            // A row that was put back is authentic: the account might be locked since, or a session ended.
            try database.recorder.requireGroup(
                ofAccount: session.account, of: [.account, .session, .knownDevice], in: database)
            guard let account = try AccountRows.account(session.account, in: database),
                account.app == session.app,
                account.state == .active, account.isProved(by: credential)
            else { return .accountChanged }
            let count = try SessionRows.countLive(of: account.number, in: database)
            let live =
                slots.hasRoom(beside: count) ? [] : try SessionRows.live(of: account.number, in: database)
            let end = SessionTermination(.replaced, at: now, by: session.deviceClass.rawValue)
            var ended: [StoredSession] = []
            for var replaced in slots.displaced(by: session, among: live) {
                replaced.change = try SQLStore.end(replaced.id, with: end, in: database)
                replaced.end = end
                ended.append(replaced)
            }
            var opened = session
            opened.change = try SQLStore.nextSessionChange(in: database)
            try SessionRows.insert(opened, in: database)
            try SQLStore.tell(.sessionStarted, of: opened.id, at: now, in: database)
            if let device = KnownDeviceEntry(signingInAs: session, at: now) {
                let isKnown = try SQLStore.isKnown(device.device, of: account.number, in: database)
                try SQLStore.remember(device, of: account.number, in: database)
                if !isKnown { try SQLStore.tell(.deviceAdded, of: opened.id, at: now, in: database) }
            }
            let forgotten = try SQLStore.forgetEnded(of: account.number, sparing: ended, in: database)
            return .yes(opened, ended: ended, forgotten: forgotten)
        }
    }

    package func swap(
        _ id: SessionID, from old: StoredSession.Credentials, to next: StoredSession.Credentials,
        by release: KeyID?,
        at now: Int64
    ) throws(OperationalError) -> SessionSwapOutcome {
        try write { (database) throws(OperationalError) in
            guard var session = try SessionRows.session(id, in: database) else { return .missing }
            guard session.end == nil, session.credentials == old else { return .moved(session) }
            session.credentials = next
            session.used = max(session.used, now)
            if let release { session.release = release }
            session.change = try SQLStore.nextSessionChange(in: database)
            try SessionRows.replace(session, in: database)
            return .yes(session)
        }
    }

    package func session(_ id: SessionID) throws(OperationalError) -> StoredSession? {
        try read(whenEmpty: nil) { (database) throws(OperationalError) in
            try SessionRows.session(id, in: database)
        }
    }

    package func sessions(of account: Int64) throws(OperationalError) -> [StoredSession] {
        try read(whenEmpty: []) { (database) throws(OperationalError) in
            try SessionRows.read(
                in: database,
                sql: "\(SessionRows.select) WHERE account = ? ORDER BY ended_at IS NOT NULL, created, id",
                binding: .integer(account))
        }
    }

    package func liveSessions(of account: Int64, newest limit: Int) throws(OperationalError)
        -> [StoredSession]
    {
        try read(whenEmpty: []) { (database) throws(OperationalError) in
            try SessionRows.read(
                in: database,
                sql: """
                    \(SessionRows.select) WHERE account = ? AND ended_at IS NULL
                    ORDER BY created DESC, change DESC LIMIT ?
                    """,
                binding: .integer(account), .integer(Int64(limit))
            ).reversed()
        }
    }

    package func liveSessions(
        of app: AppName, usedSince time: Int64
    ) throws(OperationalError) -> [LiveSessionCount] {
        try read(whenEmpty: []) { (database) throws(OperationalError) in
            try database.rows(
                """
                SELECT platform, release, count(*) FROM session
                WHERE app = ? AND used >= ? AND ended_at IS NULL
                GROUP BY platform, release ORDER BY platform, release NULLS FIRST
                """, binding: .text(app.description), .integer(time)
            ) { (row) throws(OperationalError) in
                let release = row.isNull(1) ? nil : KeyID(row.text(1))
                guard let platform = Platform(row.text(0)), row.isNull(1) || release != nil else {
                    throw ReleaseRows.unreadable("session", named: "?", in: database)
                }
                return LiveSessionCount(platform: platform, release: release, count: Int(row.integer(2)))
            }
        }
    }

    package func sessions(of app: AppName, limit: Int) throws(OperationalError) -> [StoredSession] {
        try sessionListing(of: app, limit: limit).compactMap(\.row)
    }

    package func sessionChange() throws(OperationalError) -> Int64 {
        try read(whenEmpty: 0) { (database) throws(OperationalError) in
            try database.integer("SELECT number FROM session_change") ?? 0
        }
    }

    package func sessions(changedAfter change: Int64, limit: Int) throws(OperationalError) -> [StoredSession]
    {
        try read(whenEmpty: []) { (database) throws(OperationalError) in
            try SessionRows.read(
                in: database, sql: "\(SessionRows.selectUnverified) WHERE change > ? ORDER BY change LIMIT ?",
                binding: .integer(change),
                .integer(Int64(limit)))
        }
    }

    package func outlines(changedAfter change: Int64, limit: Int) throws(OperationalError) -> [SessionOutline]
    {
        try read(whenEmpty: []) { (database) throws(OperationalError) in
            try SessionOutlineRows.read(changedAfter: change, limit: limit, in: database)
        }
    }

    /// Increments the number of session changes and returns it.
    static func nextSessionChange(in database: Database) throws(OperationalError) -> Int64 {
        guard
            let number = try database.integer(
                """
                UPDATE session_change
                SET number = max(number, (SELECT coalesce(max(change), 0) FROM session)) + 1 RETURNING number
                """)
        else {
            throw OperationalError(
                .unreachable,
                message: "\(database.path): the count of session changes is gone; restore a backup")
        }
        return number
    }
}

extension KnownDeviceEntry {
    /// Nil for a session that is not bound to a device.
    fileprivate init?(signingInAs session: StoredSession, at now: Int64) {
        guard case .device(let device) = session.credentials else { return nil }
        self.init(
            device: KnownDevice(signingKey: device.signingKey, lastSeen: now), kind: session.deviceClass,
            name: session.deviceName, firstSeen: now)
    }
}

extension SQLStore {
    package func end(
        _ which: SessionSelection, with end: SessionTermination, recording draft: AuditDraft?
    ) throws(OperationalError) -> [SessionID] {
        try write { (database) throws(OperationalError) in
            let ended = try SQLStore.end(which, with: end, by: draft?.actor, in: database)
            if let draft, !ended.isEmpty { try SQLStore.add(draft, to: database) }
            return ended
        }
    }

    package func revoke(
        _ id: SessionID, of account: Int64?, device: RevokedDevice, with end: SessionTermination,
        recording draft: AuditDraft
    ) throws(OperationalError) -> SessionRevocation {
        try write { (database) throws(OperationalError) in
            var outcome = SessionRevocation()
            guard let session = try SessionRows.session(id, in: database),
                account == nil || session.account == account
            else { return outcome }
            if session.end == nil {
                _ = try SQLStore.end(id, with: end, by: draft.actor, in: database)
                outcome.didEnd = true
            }
            if let forgotten = try SQLStore.device(of: session, revokedAs: device, in: database) {
                outcome.didForgetDevice = try SQLStore.forget(
                    device: forgotten, of: session.account, in: database)
            }
            if outcome != SessionRevocation() { try SQLStore.add(draft, to: database) }
            return outcome
        }
    }

    /// The id of the device to forget; nil if it stays, or if the session has none.
    private static func device(
        of session: StoredSession, revokedAs fate: RevokedDevice, in database: Database
    ) throws(OperationalError) -> [UInt8]? {
        guard case .device(let credentials) = session.credentials else { return nil }
        switch fate {
        case .kept: return nil
        case .forgotten: break
        case .forgottenUnlessOf(let other):
            if let own = try SessionRows.session(other, in: database),
                case .device(let keys) = own.credentials,
                keys.signingKey == credentials.signingKey
            {
                return nil
            }
        }
        return KnownDevice(signingKey: credentials.signingKey, lastSeen: 0).id
    }

    package func forgetSessions(
        of app: AppName, usedBefore idle: TrustedTime, createdBefore age: TrustedTime?, limit: Int
    ) throws(OperationalError) -> [SessionID] {
        try write { (database) throws(OperationalError) in
            var ids = try SQLStore.forgetUnended(
                of: app, where: "used", isBefore: idle, limit: limit, in: database)
            if let age {
                ids += try SQLStore.forgetUnended(
                    of: app, where: "created", isBefore: age, limit: limit - ids.count, in: database)
            }
            return ids
        }
    }

    private static func forgetUnended(
        of app: AppName, where column: StaticString, isBefore time: TrustedTime, limit: Int,
        in database: Database
    ) throws(OperationalError) -> [SessionID] {
        try SessionRows.ids(
            in: database,
            sql: """
                DELETE FROM session WHERE change IN (
                    SELECT change FROM session WHERE app = ? AND \(column) < ? AND ended_at IS NULL
                    ORDER BY \(column) LIMIT ?)
                RETURNING id
                """,
            binding: .text(app.description), .integer(time.seconds), .integer(Int64(limit)))
    }

    package func forgetSessions(
        endedBefore time: TrustedTime, limit: Int
    ) throws(OperationalError) -> [SessionID] {
        try write { (database) throws(OperationalError) in
            try SessionRows.ids(
                in: database,
                sql: """
                    DELETE FROM session WHERE change IN (
                        SELECT change FROM session WHERE ended_at < ? ORDER BY ended_at LIMIT ?)
                    RETURNING id
                    """, binding: .integer(time.seconds), .integer(Int64(limit)))
        }
    }

    /// Deletes all but the account's most recently ended sessions, at most a few hundred, so that waiting
    /// writers are not delayed; the next session of the account deletes more. Sessions that ended in this
    /// transaction stay until then: a reader that has just read one as live then finds it ended, and not
    /// missing.
    static func forgetEnded(
        of account: Int64, sparing ended: [StoredSession], in database: Database
    ) throws(OperationalError) -> [SessionID] {
        try SessionRows.ids(
            in: database,
            sql: """
                DELETE FROM session WHERE change IN (
                    SELECT change FROM session WHERE account = ? AND ended_at IS NOT NULL AND change < ?
                    ORDER BY ended_at DESC, created DESC LIMIT 200 OFFSET ?)
                RETURNING id
                """, binding: .integer(account), .integer(ended.first?.change ?? .max),
            .integer(Int64(max(0, SlotRule.mostEnded - ended.count))))
    }

    /// Ends the selected sessions that are live and returns their ids.
    static func end(
        _ which: SessionSelection, with end: SessionTermination, by actor: AuditActor? = nil,
        in database: Database
    ) throws(OperationalError) -> [SessionID] {
        let live = try SQLStore.live(which, in: database)
        for id in live { _ = try SQLStore.end(id, with: end, by: actor, in: database) }
        return live
    }

    private static func live(_ which: SessionSelection, in database: Database) throws(OperationalError)
        -> [SessionID]
    {
        switch which {
        case .one(let id):
            return try SessionRows.ids(
                in: database, sql: "SELECT id FROM session WHERE id = ? AND ended_at IS NULL",
                binding: .blob(id.bytes))
        case .oneOf(let id, let account):
            return try SessionRows.ids(
                in: database, sql: "SELECT id FROM session WHERE id = ? AND account = ? AND ended_at IS NULL",
                binding: .blob(id.bytes),
                .integer(account))
        case .account(let number, let kept):
            return try SessionRows.ids(
                in: database,
                sql: """
                    SELECT id FROM session WHERE account = ? AND ended_at IS NULL AND id IS DISTINCT FROM ?
                    ORDER BY created, change
                    """,
                binding: .integer(number), .optional(kept?.bytes))
        case .app(let app):
            return try SessionRows.ids(
                in: database, sql: "SELECT id FROM session WHERE app = ? AND ended_at IS NULL",
                binding: .text(app.description))
        case .all:
            return try SessionRows.ids(in: database, sql: "SELECT id FROM session WHERE ended_at IS NULL")
        }
    }

    /// Returns the number of the change.
    static func end(
        _ id: SessionID, with end: SessionTermination, by actor: AuditActor? = nil, in database: Database
    ) throws(OperationalError) -> Int64 {
        let change = try nextSessionChange(in: database)
        try database.run(
            "UPDATE session SET change = ?, ended_at = ?, end_reason = ?, ended_by = ? WHERE id = ?",
            changing: "session \(id)",
            binding: [
                .integer(change), .integer(end.at), .text(end.reason.rawValue), .optional(end.by),
                .blob(id.bytes),
            ])
        // A restoration ends all sessions, and tells no endpoint.
        if end.reason != .restored {
            try tell(
                .sessionEnded, of: id, at: end.at, by: actor,
                details: [("reason", .string(end.reason.rawValue))], in: database)
        }
        return change
    }
}
