import CountersignGate
import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// What becomes of sessions while a server runs: they are opened by a login, renewed, ended, and forgotten. Each change is
/// durable, and known to the gate, when its call returns.
package struct SessionLife: Sendable {
    let deployment: Deployment
    let live: LiveSessions
    let writer: any StoreWriter
    let replay: any ReplayGuard
    let random: any RandomSource

    /// `replay` is the gate's own.
    package init(
        _ deployment: Deployment, _ live: LiveSessions, writer: any StoreWriter, replay: any ReplayGuard,
        random: any RandomSource = SystemRandom()
    ) {
        self.deployment = deployment
        self.live = live
        self.writer = writer
        self.replay = replay
        self.random = random
    }

    /// A connection for reading that waits for no writer.
    package var reader: any Store { live.reader }

    /// A name that no session has.
    package func newID() -> SessionID {
        while true {
            if let id = SessionID(random.bytes(SessionID.count).span), !id.readsAsOption { return id }
        }
    }

    // MARK: Beginning

    /// Begins the session of a login that was proved, in the place of those that its slot has no room for. `now` is in
    /// whole Unix seconds. Refuses `wrong-credentials` where the account was locked, removed or given another password
    /// since the login began.
    nonisolated(nonsending) package func open(
        _ login: ProvedLogin, from release: ReleaseKey, at now: Int64
    ) async throws(Refusal) -> OpenedSession {
        let app = login.account.app
        guard let platform = Platform(release.platform) else { throw Refusal(.malformed, "platform") }
        let policy = try policy(of: app)
        let (id, device, root) = (newID(), login.binding.device, login.keys.root)
        let credentials = DeviceCredentials(
            signingKey: device.signingKey.bytes, agreementKey: device.agreementKey.bytes, epochBegan: now,
            sealedRoot: deployment.seal(root, of: id, in: app, epoch: 0))
        var session = StoredSession(
            id: id, account: login.account.number, app: app, platform: platform, deviceClass: device.kind,
            deviceName: device.name.description, created: now, credentials: .device(credentials))
        session.release = release.id
        session.keyStorage = device.keyStorage
        _ = try await open(session, proving: login.credential, slots: policy.slots, at: now)
        let token = SessionToken(id: id, epoch: 0)
        return OpenedSession(
            token: token, expires: now.later(by: policy.tokenLifetime), idleEnd: now.later(by: policy.sessionIdle),
            slots: policy.slots, signer: Credentials(keyID: KeyID(token), key: SigningKey(root.requestKey)))
    }

    /// The same for a session of any kind, as it is to be stored; answers the row. `credential` names the registration
    /// that was proved; nil for an account on the login ladder.
    nonisolated(nonsending) package func open(
        _ session: StoredSession, proving credential: [UInt8]?, slots: SlotRule, at now: Int64
    ) async throws(Refusal) -> StoredSession {
        let opened = try await writer.write { (store) throws(Fault) in
            try store.open(session, proving: credential, slots: slots, at: now)
        }
        guard case .yes(let row, let ended, let forgotten) = opened else {
            throw Refusal(.wrongCredentials, "account \(session.account): changed while it signed in")
        }
        live.take(ended + [row])
        live.forget(forgotten)
        return row
    }

    // MARK: Ending

    /// Ends those of them that live; answers which did. Recorded where any did, with `draft`.
    @discardableResult
    nonisolated(nonsending) package func end(
        _ which: SessionSelection, _ end: SessionEnd, recording draft: AuditDraft? = nil
    ) async throws(Refusal) -> [SessionID] {
        let rows = try await writer.write { (store) throws(Fault) in
            try SessionLife.rows(of: store.end(which, end, recording: draft), in: store)
        }
        live.take(rows)
        return rows.map(\.id)
    }

    static func rows(of ids: [SessionID], in store: any Store) throws(Fault) -> [StoredSession] {
        var rows: [StoredSession] = []
        for id in ids { if let row = try store.session(id) { rows.append(row) } }
        return rows
    }
}

/// What a client is told of the session that it began. Times are whole Unix seconds.
package struct OpenedSession: Sendable {
    package var token: SessionToken
    package var expires: Int64
    package var idleEnd: Int64
    package var slots: SlotRule
    /// Signs the answer.
    package var signer: Credentials
}
