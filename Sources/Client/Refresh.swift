import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Renews what a session's requests are signed or accompanied by, once, however many ask for it: whoever holds the vault's lease
/// does it, and the others find it done.
///
/// An answer may be lost at any point. The attempt is in the vault before it is sent, so that asking again, in an hour or after a
/// crash, is the same attempt, and has the same answer. Source: docs/protocol.md, "Refresh".
struct Refresh: Sendable {
    let installation: Installation
    let surroundings: Surroundings

    private var kept: KeptState { KeptState(vault: surroundings.vault) }

    /// Returns once the vault has another token than `used`.
    nonisolated(nonsending) func callAsFunction(insteadOf used: Token) async throws(ClientProblem) {
        let lease = try await kept.lease()
        defer { lease.release() }
        var state = try kept.read()
        guard let login = state.login else { throw .notSignedIn }
        guard used == Token(login) else { return }
        do {
            try await renewTwice(&state)
        } catch {
            // Only what the authority said, and said to this request, ends a session.
            guard case .refused(let notice) = error, notice.endsSession else { throw error }
            state.login = nil
            try kept.write(state)
            throw .sessionEnded(notice)
        }
    }

    /// A lost answer is asked for once more: a second copy of an attempt has the answer of the first.
    nonisolated(nonsending) private func renewTwice(_ state: inout ClientState) async throws(ClientProblem) {
        do {
            try await renew(&state)
        } catch {
            guard case .outcomeUnknown = error else { throw error }
            try await renew(&state)
        }
    }

    nonisolated(nonsending) private func renew(_ state: inout ClientState) async throws(ClientProblem) {
        guard let login = state.login else { throw .notSignedIn }
        switch login.session {
        case .device(let session): try await renew(session, login, &state)
        case .bearer(let session): try await renew(session, login, &state)
        }
    }

    /// What a request went under.
    enum Token: Sendable, Equatable {
        case session(SessionToken)
        /// SHA-256 of the token.
        case bearer([UInt8])

        init(_ login: SignedIn) {
            switch login.session {
            case .device(let session): self = .session(session.token)
            case .bearer(let session):
                let digest = session.token.withExposedBytes { SHA256.digest($0) }
                self = .bearer(digest.indices.map { digest[$0] })
            }
        }
    }

    nonisolated(nonsending) private func renew(
        _ begun: DeviceSession, _ login: SignedIn, _ state: inout ClientState
    ) async throws(ClientProblem) {
        var (session, login) = (begun, login)
        guard let keys = state.keys else { throw .vault(VaultProblem("the vault has a session and no device keys")) }
        guard let app = KnownApp(installation, state).name else { throw .incomplete("the app's name is not known") }
        // It was asked to leave the successor: so the server has it.
        if let successor = session.successor { session.confirm(successor.number) }
        let now = surroundings.time.now + state.clockOffset
        let (attempt, ahead) = session.beginRefresh(
            at: now, surroundings.random.bytes(RefreshTranscript.attemptCount))
        login.session = .device(session)
        state.login = login
        try kept.write(state)

        var routes = AuthorityRoutes(installation, surroundings, clockOffset: state.clockOffset)
        let signer = session.signer(of: session.current, release: installation.release.keyID)
        let mac = session.current.root.requestKey.withExposedBytes { HMACSHA256(key: $0) }
        let release = installation.release.keyID.description
        let answered = try await routes.post(
            "/token", trust: .keys { _ in [signer.keyID: signer.key] }
        ) { (time) throws(ClientProblem) in
            let dated = time + ahead
            let transcript = RefreshTranscript(
                app: app, release: release, token: session.token, attempt: attempt, time: dated
            ).bytes
            let sum = mac.authenticate(transcript.span)
            return [
                "token": .string(session.token.description), "attempt": .bytes(attempt), "time": .integer(dated),
                "mac": .bytes(sum.indices.map { sum[$0] }), "signature": .bytes(try keys.sign(transcript)),
            ]
        }
        guard answered.signer == signer.keyID else { throw .notGenuine("token: not signed with the session's key") }
        try session.follow(AnswerBody(answered.response, of: "token"), with: keys.agreement)
        login.session = .device(session)
        state.login = login
        state.clockOffset = routes.clockOffset
        try kept.write(state)
    }

    nonisolated(nonsending) private func renew(
        _ begun: BearerSession, _ login: SignedIn, _ state: inout ClientState
    ) async throws(ClientProblem) {
        var (session, login) = (begun, login)
        var routes = AuthorityRoutes(installation, surroundings, clockOffset: state.clockOffset)
        let trust = try installation.trustForPasswords()
        let answered = try await routes.post("/token", trust: trust) { (_) throws(ClientProblem) in
            ["login_token": .string(session.loginToken.withExposedBytes { $0.text })]
        }
        let answer = try AnswerBody(answered.response, of: "token")
        session.token = try answer.secret("token")
        session.loginToken = try answer.secret("login_token")
        session.expires = try answer.number("expires")
        login.session = .bearer(session)
        state.login = login
        state.clockOffset = routes.clockOffset
        try kept.write(state)
    }
}

extension DeviceSession {
    /// The answer names the next epoch and brings the server's half of its key.
    fileprivate mutating func follow(_ answer: AnswerBody, with key: AgreementKey) throws(ClientProblem) {
        let token = try answer.token()
        guard token.id == id, token.epoch == current.number + 1 else {
            throw answer.missing("token", "the one after \(self.token)")
        }
        guard let point = P256Point(try answer.bytes("ephemeral", count: P256Point.count)),
            let agreed = try? key.sharedSecret(with: point)
        else { throw answer.missing("ephemeral", "a point on P-256") }
        follow(
            root: current.root.next(agreed: agreed), expires: try answer.number("expires"),
            idle: try answer.number("idle"))
    }
}

extension Notice {
    /// Whether it is the authority's own and final word about a session.
    var endsSession: Bool { isGenuine && code == Refusal.Code.sessionEnded.rawValue }
}
