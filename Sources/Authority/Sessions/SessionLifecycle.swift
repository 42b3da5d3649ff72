import CountersignGate
import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Opens, renews, ends and deletes sessions while a server runs. Each change is durable, and known to the
/// gate, when its call returns.
package struct SessionLifecycle: Sendable {
    let deployment: Deployment
    let directory: SessionDirectory
    package let writer: any StoreWriter
    let replay: any ReplayGuard
    let threads: StoreReadThreads
    let random: any RandomSource
    let refreshes = RefreshLimiter()

    /// `replay` is the gate's own replay guard.
    package init(
        _ deployment: Deployment, directory live: SessionDirectory, writer: any StoreWriter,
        replay: any ReplayGuard, reading threads: StoreReadThreads = StoreReadThreads(nil),
        random: any RandomSource = SystemRandom()
    ) {
        self.deployment = deployment
        self.directory = live
        self.writer = writer
        self.replay = replay
        self.threads = threads
        self.random = random
    }

    /// A connection for reading that never waits for a writer.
    package var reader: any Store { directory.reader }

    /// A new random session id.
    package func newID() -> SessionID {
        while true {
            if let id = SessionID(random.bytes(SessionID.count).span), !id.readsAsOption { return id }
        }
    }

    // MARK: Beginning

    /// Opens the session of a verified login and ends those that its slot rule has no room for. `now` is in
    /// whole Unix seconds. Refuses with `wrong-credentials` if the account was locked, removed or given
    /// another password since the login began.
    package func open(
        _ login: VerifiedLogin, from release: AppRelease, at now: Int64
    ) async throws(Refusal) -> OpenedSession {
        let app = login.account.app
        guard let platform = Platform(release.platform) else { throw Refusal(.malformed, detail: "platform") }
        let policy = try policy(of: app)
        let (id, device, root) = (newID(), login.binding.device, login.keys.root)
        var credentials = DeviceCredentials(
            signingKey: device.signingKey.bytes, agreementKey: device.agreementKey.bytes, epochBegan: now,
            sealedRoot: deployment.seal(root, of: id, in: app, epoch: 0))
        credentials.release = release.id
        var session = StoredSession(
            id: id, account: login.account.number, app: app, platform: platform, deviceClass: device.kind,
            deviceName: device.name.description, created: now, credentials: .device(credentials))
        session.release = release.id
        session.keyStorage = device.keyStorage
        _ = try await open(session, proving: login.credential, slots: policy.slots, at: now)
        let token = SessionToken(id: id, epoch: 0)
        return OpenedSession(
            token: token, expires: policy.tokenEnd(from: now, created: now),
            idleEnd: policy.sessionEnd(used: now, created: now),
            slots: policy.slots, signer: Credentials(keyID: KeyID(token), key: SigningKey(root.requestKey)))
    }

    /// The same for a session of any kind, given as it is to be stored; returns the row. `credential` names
    /// the registration that was verified; nil for an account on the login ladder.
    package func open(
        _ session: StoredSession, proving credential: [UInt8]?, slots: SlotRule, at now: Int64
    ) async throws(Refusal) -> StoredSession {
        let opened = try await writer.write { (store) throws(OperationalError) in
            try store.open(session, proving: credential, slots: slots, at: now)
        }
        guard case .yes(let row, let ended, let forgotten) = opened else {
            throw Refusal(.wrongCredentials, detail: "account \(session.account): changed while it signed in")
        }
        directory.apply(ended + [row])
        directory.forget(forgotten)
        return row
    }

    // MARK: Ending

    /// Ends the selected sessions that are live and returns their ids. If there are any, `draft` is
    /// recorded.
    @discardableResult
    package func end(
        _ which: SessionSelection, with end: SessionTermination, recording draft: AuditDraft? = nil
    ) async throws(Refusal) -> [SessionID] {
        let rows = try await writer.write { (store) throws(OperationalError) in
            try SessionLifecycle.rows(of: store.end(which, with: end, recording: draft), in: store)
        }
        directory.apply(rows)
        return rows.map(\.id)
    }

    static func rows(of ids: [SessionID], in store: any Store) throws(OperationalError) -> [StoredSession] {
        var rows: [StoredSession] = []
        // A row that does not verify keeps no other session from ending. ``SessionDirectory/reconcile()``
        // reads its end.
        for id in ids { if let row = try? store.session(id) { rows.append(row) } }
        return rows
    }
}

/// The answer to a login. Times are whole Unix seconds.
package struct OpenedSession: Sendable {
    package var token: SessionToken
    package var expires: Int64
    package var idleEnd: Int64
    package var slots: SlotRule
    /// Signs the answer.
    package var signer: Credentials
}

/// Reads for the routes.
extension SessionLifecycle {
    /// The newest `limit` live sessions, the oldest of them first.
    package func readLive(of account: Int64, newest limit: Int) async throws(Refusal) -> [StoredSession] {
        try await threads.run { [reader] () throws(OperationalError) in
            try reader.liveSessions(of: account, newest: limit)
        }
    }

    package func readAccount(_ number: Int64) async throws(Refusal) -> Account? {
        try await threads.run { [reader] () throws(OperationalError) in try reader.account(number) }
    }

    /// When the token of the request under `session` expires, in whole Unix seconds. The lifetime of an
    /// offered key begins with its first use, which may be this request; `row` may not show that use yet.
    package func expiry(of session: Session, row: StoredSession, at now: Int64) throws(Refusal) -> Int64 {
        guard session.edition == .offered, case .device(let device) = row.credentials else {
            return session.expires
        }
        let ahead = directory.shard(of: row.id).confirmation(of: row.id)
        let began = device.epoch == session.epoch ? device.epochBegan : ahead?.at ?? now
        return try policy(of: row.app).tokenEnd(from: began, created: row.created)
    }

    /// When the session ends unless it is renewed before, in whole Unix seconds.
    package func idleEnd(of session: StoredSession) throws(Refusal) -> Int64 {
        try policy(of: session.app).sessionEnd(used: session.used, created: session.created)
    }

    /// Ends a session of `account` on the account's own request, by its session `caller`, and forgets the
    /// session's device unless it is the caller's own. Does nothing if the session belongs to another
    /// account. The outcome is whether anything changed.
    package func revoke(
        _ id: SessionID, by account: Account, from caller: SessionID, at now: Int64
    ) async throws(Refusal) -> Bool {
        let draft = deployment.auditDraft(
            for: .sessionRevoke, on: .session(id, of: account.app),
            by: .account(account.name, of: account.app))
        let (outcome, rows) = try await writer.write { (store) throws(OperationalError) in
            let outcome = try store.revoke(
                id, of: account.number, device: .forgottenUnlessOf(caller),
                with: SessionTermination(.revoked, at: now), recording: draft)
            return (outcome, outcome.didEnd ? try SessionLifecycle.rows(of: [id], in: store) : [])
        }
        directory.apply(rows)
        return outcome != SessionRevocation()
    }
}

/// Maintenance: sessions are deleted when they have been over for their retention time. It ends none: that a
/// session has been idle for too long, or is too old, is judged at each request, and by another clock or
/// another policy it may not be. Each run handles a bounded batch, so that no request waits long for the
/// writer.
extension SessionLifecycle {
    /// Seconds for which an ended session's key is kept, so that its holder learns why it ended. Source:
    /// docs/protocol.md, "Sessions".
    package static let endedSessionRetention: Int64 = 30 * 86_400
    /// The retention of ended sessions while there are more than ``mostKept`` of them, and of expired ones
    /// while there are more than ``mostKept`` sessions that have not ended.
    private static let shortEndedSessionRetention: Int64 = 86_400
    private static let mostKept = 1_000_000
    private static let batchSize = 200

    /// A timer calls it every few seconds.
    package func performMaintenance(at now: TrustedTime) async throws(Refusal) {
        let counts = directory.counts
        let expired = SessionLifecycle.retention(among: counts.all - counts.ended)
        for app in directory.keys.apps { try await forgetUnused(of: app, before: now.earlier(by: expired)) }
        let ended = try await writer.write { (store) throws(OperationalError) in
            try store.forgetSessions(
                endedBefore: now.earlier(by: SessionLifecycle.retention(among: counts.ended)),
                limit: SessionLifecycle.batchSize)
        }
        directory.forget(ended)
    }

    private static func retention(among count: Int) -> Int64 {
        count > mostKept ? shortEndedSessionRetention : endedSessionRetention
    }

    /// Deletes sessions that were over at that time, although nothing ended them.
    private func forgetUnused(of app: AppName, before time: TrustedTime) async throws(Refusal) {
        let policy = try policy(of: app)
        let idle = time.earlier(by: policy.sessionIdle)
        let age = policy.sessionMax.map { time.earlier(by: $0) }
        let forgotten = try await writer.write { (store) throws(OperationalError) in
            try store.forgetSessions(
                of: app, usedBefore: idle, createdBefore: age, limit: SessionLifecycle.batchSize)
        }
        directory.forget(forgotten)
    }
}
