import CountersignAuthority
import CountersignGate
import CountersignHandshake
import CountersignSchemes
import CountersignWire

extension SQLiteStore {
    package func open(
        _ session: StoredSession, proving credential: [UInt8]?, slots: SlotRule, at now: Int64
    ) throws(Fault) -> SessionOpened {
        try write { (database) throws(Fault) in
            guard let account = try AccountRows.account(session.account, in: database), account.app == session.app,
                account.state == .active, account.isProved(by: credential)
            else { return .accountChanged }
            let count = try SessionRows.countLive(of: account.number, in: database)
            let live = slots.hasRoom(beside: count) ? [] : try SessionRows.live(of: account.number, in: database)
            let end = SessionEnd(.replaced, at: now, by: session.deviceClass.rawValue)
            var ended: [StoredSession] = []
            for var replaced in slots.displaced(by: session, among: live) {
                replaced.change = try SQLiteStore.end(replaced.id, end, in: database)
                replaced.end = end
                ended.append(replaced)
            }
            var opened = session
            opened.change = try SQLiteStore.nextSessionChange(in: database)
            try SessionRows.insert(opened, in: database)
            if let device = KnownDevice(signingInAs: session, at: now) {
                try SQLiteStore.remember(device, of: account.number, in: database)
            }
            let forgotten = try SQLiteStore.forgetEnded(of: account.number, sparing: ended, in: database)
            return .yes(opened, ended: ended, forgotten: forgotten)
        }
    }

    package func swap(
        _ id: SessionID, _ old: StoredSession.Credentials, for next: StoredSession.Credentials, by release: KeyID?,
        at now: Int64
    ) throws(Fault) -> SessionSwapped {
        try write { (database) throws(Fault) in
            guard var session = try SessionRows.session(id, in: database) else { return .missing }
            guard session.end == nil, session.credentials == old else { return .moved(session) }
            session.credentials = next
            session.used = now
            if let release { session.release = release }
            session.change = try SQLiteStore.nextSessionChange(in: database)
            try SessionRows.replace(session, in: database)
            return .yes(session)
        }
    }

    package func session(_ id: SessionID) throws(Fault) -> StoredSession? {
        try read(whenEmpty: nil) { (database) throws(Fault) in try SessionRows.session(id, in: database) }
    }

    package func sessions(of account: Int64) throws(Fault) -> [StoredSession] {
        try read(whenEmpty: []) { (database) throws(Fault) in
            try SessionRows.read(
                database,
                "\(SessionRows.select) WHERE account = ? ORDER BY ended_at IS NOT NULL, created, id", .integer(account))
        }
    }

    package func liveSessions(of account: Int64, newest limit: Int) throws(Fault) -> [StoredSession] {
        try read(whenEmpty: []) { (database) throws(Fault) in
            try SessionRows.read(
                database,
                "\(SessionRows.select) WHERE account = ? AND ended_at IS NULL ORDER BY created DESC, change DESC LIMIT ?",
                .integer(account), .integer(Int64(limit))
            ).reversed()
        }
    }

    package func liveSessions(of app: AppName) throws(Fault) -> [LiveSessionCount] {
        try read(whenEmpty: []) { (database) throws(Fault) in
            try database.rows(
                """
                SELECT platform, release, count(*) FROM session WHERE app = ? AND ended_at IS NULL
                GROUP BY platform, release ORDER BY platform, release
                """, .text(app.description)
            ) { (row) throws(Fault) in
                let release = row.isNull(1) ? nil : KeyID(row.text(1))
                guard let platform = Platform(row.text(0)), row.isNull(1) || release != nil else {
                    throw Rows.unreadable("session", "?", database)
                }
                return LiveSessionCount(platform: platform, release: release, count: Int(row.integer(2)))
            }
        }
    }

    package func sessions(of app: AppName, limit: Int) throws(Fault) -> [StoredSession] {
        try read(whenEmpty: []) { (database) throws(Fault) in
            // By way of the accounts: an index of sessions by app would be written at every refresh for this alone.
            try SessionRows.read(
                database,
                """
                \(SessionRows.select(from: "account CROSS JOIN session ON session.account = account.number"))
                WHERE account.app = ?
                ORDER BY account.number, session.ended_at IS NOT NULL, session.created, session.id LIMIT ?
                """, .text(app.description), .integer(Int64(limit)))
        }
    }

    package func sessionChange() throws(Fault) -> Int64 {
        try read(whenEmpty: 0) { (database) throws(Fault) in
            try database.integer("SELECT number FROM session_change") ?? 0
        }
    }

    package func sessions(changedAfter change: Int64, limit: Int) throws(Fault) -> [StoredSession] {
        try read(whenEmpty: []) { (database) throws(Fault) in
            try SessionRows.read(
                database, "\(SessionRows.select) WHERE change > ? ORDER BY change LIMIT ?", .integer(change),
                .integer(Int64(limit)))
        }
    }

    /// The number of the next change of a session.
    static func nextSessionChange(in database: Database) throws(Fault) -> Int64 {
        guard let number = try database.integer("UPDATE session_change SET number = number + 1 RETURNING number") else {
            throw Fault(.unreachable, "\(database.path): the count of session changes is gone; restore a backup")
        }
        return number
    }
}

extension KnownDevice {
    /// Nil for a session that is bound to no device.
    fileprivate init?(signingInAs session: StoredSession, at now: Int64) {
        guard case .device(let device) = session.credentials else { return nil }
        self.init(signingKey: device.signingKey, lastSeen: now)
    }
}
