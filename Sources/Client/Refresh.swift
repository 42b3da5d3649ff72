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

    /// How often it asks. All of that, each as slow as a transport lets it be, is over before who waits for the lease gives up.
    private static let mostRounds = 4

    private var kept: KeptState { KeptState(vault: surroundings.vault) }

    /// Why another token is wanted than the one that a request went under.
    enum Cause: Sendable {
        /// The server knows it, and says that it ran out.
        case ranOut(SignedIn.Token)
        /// The server says that it does not know it. It may have lost it, or have it in use: somebody on the way can have an honest
        /// refusal made for a request that he changed. So nothing is forgotten for it.
        case isNotKnown(DeviceSession)
    }

    /// Returns once the vault has what to go on with.
    nonisolated(nonsending) func callAsFunction(_ cause: Cause) async throws(ClientProblem) {
        let lease = try await kept.lease()
        defer { lease.release() }
        var state = try kept.read()
        guard let login = state.login else { throw .notSignedIn }
        switch (cause, login.session) {
        case (.ranOut(let used), _):
            guard login.token == used else { return }
            // It was known, and so the server has it.
            if case .device(var session) = login.session, let successor = session.successor {
                session.confirm(successor.number)
                state.login?.session = .device(session)
            }
        case (.isNotKnown(let used), .device(let session)):
            // Asked again from the epoch before: where the server offers a successor, that is the one to go on with, and where
            // it says that this attempt was followed, it is the one that is kept.
            guard session.token == used.token, (session.successor == nil) == (used.successor == nil) else { return }
        case (.isNotKnown, .bearer): return
        }
        do {
            try await renewAtLast(&state)
        } catch {
            // Only what the authority said, and said to this request, ends a session.
            guard case .refused(let notice) = error, notice.endsSession else { throw error }
            state.login = nil
            try kept.write(state)
            throw .sessionEnded(notice)
        }
    }

    /// A lost answer is asked for once more: a second copy of an attempt has the answer of the first.
    nonisolated(nonsending) private func renewAtLast(_ state: inout ClientState) async throws(ClientProblem) {
        var (losses, replays) = (0, 0)
        while true {
            do {
                return try await renewOnce(&state)
            } catch {
                switch error {
                case .outcomeUnknown, .brokenOff: losses += 1
                case .refused(let notice) where notice.isReplay:
                    replays += 1
                    if try isFollowed(&state, replays) { return }
                default: throw error
                }
                guard losses < 2, losses + replays < Refresh.mostRounds else { throw error }
            }
        }
    }

    /// Whether the attempt, which was refused as a replay, led to an epoch that is here.
    ///
    /// A copy that was doubled on the way is refused like that, and the next, which bears another time, is not. Where that one is, too,
    /// the attempt was followed: the epoch that it led to is in use. If it is not here, it was followed by somebody else, or
    /// before this vault was put back to what it is. Another attempt tells: where nobody has used what was offered it joins
    /// the first, and else the session ends.
    private func isFollowed(_ state: inout ClientState, _ replays: Int) throws(ClientProblem) -> Bool {
        guard replays > 1, case .device(var session)? = state.login?.session else { return false }
        let successor = session.successor
        if let successor { session.confirm(successor.number) } else { session.abandonAttempt() }
        state.login?.session = .device(session)
        try kept.write(state)
        return successor != nil
    }

    nonisolated(nonsending) private func renewOnce(_ state: inout ClientState) async throws(ClientProblem) {
        guard let login = state.login else { throw .notSignedIn }
        switch login.session {
        case .device(let session): try await renew(session, login, &state)
        case .bearer(let session): try await renew(session, login, &state)
        }
    }

    /// Leaves `current`, whether or not a successor is known.
    nonisolated(nonsending) private func renew(
        _ begun: DeviceSession, _ login: SignedIn, _ state: inout ClientState
    ) async throws(ClientProblem) {
        var (session, login) = (begun, login)
        guard let keys = state.keys else { throw .vault(VaultProblem("the vault has a session and no device keys")) }
        guard let app = KnownApp(installation, state).name else { throw .incomplete("the app's name is not known") }
        let now = surroundings.time.now + state.clockOffset
        let (attempt, ahead) = session.beginRefresh(
            at: now, surroundings.random.bytes(RefreshTranscript.attemptCount))
        login.session = .device(session)
        state.login = login
        try kept.write(state)

        var routes = AuthorityRoutes(installation, surroundings, clockOffset: state.clockOffset)
        let left = session.token(of: session.current)
        let signer = session.signer(of: session.current, release: installation.release.keyID)
        let mac = session.current.root.requestKey.withExposedBytes { HMACSHA256(key: $0) }
        let release = installation.release.keyID.description
        let answered = try await routes.post(
            "/token", trust: .keys { _ in [signer.keyID: signer.key] }
        ) { (time) throws(ClientProblem) in
            let dated = time + ahead
            let transcript = RefreshTranscript(
                app: app, release: release, token: left, attempt: attempt, time: dated
            ).bytes
            let sum = mac.authenticate(transcript.span)
            return [
                "token": .string(left.description), "attempt": .bytes(attempt), "time": .integer(dated),
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
        let trust = try installation.trustForBearerSecrets()
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
            throw answer.missing("token", "the one after \(self.token(of: current))")
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

    var isReplay: Bool { isGenuine && code == Refusal.Code.replayed.rawValue }
}
