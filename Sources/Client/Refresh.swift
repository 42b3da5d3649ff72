import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignVault
import CountersignWire

/// Renews what a session's requests are signed or accompanied by, once, however many ask for it: those of this process wait for
/// one, and of all processes the one that holds the vault's lease does it, and the others find it done.
///
/// An answer may be lost at any point. The attempt is in the vault before it is sent, so that asking again, in an hour or after a
/// crash, is the same attempt, and has the same answer. Source: docs/protocol.md, "Refresh".
struct Refresh: Sendable {
    let installation: Installation
    let surroundings: Surroundings

    /// How often it asks. All of that, each as slow as a transport lets it be, is over before who waits for the lease gives up.
    private static let mostRounds = 4

    private var keeper: StateKeeper { surroundings.keeper }

    /// Why another token is wanted than the one that a request went under.
    enum Cause: Sendable, Hashable {
        /// The server knows it, and says that it ran out.
        case ranOut(SignedIn.Token)
        /// The server says that it does not know it. It may have lost it, or have it in use: somebody on the way can have an honest
        /// refusal made for a request that he changed. So nothing is forgotten for it.
        case isNotKnown(SessionToken, Epoch)

        /// Which of a session's two it was.
        enum Epoch: Sendable, Hashable { case current, successor }
    }

    /// Returns once there is something to go on with.
    nonisolated(nonsending) func callAsFunction(_ cause: Cause) async throws(ClientProblem) {
        // Who has nobody present must not be made to fail for it those who have.
        let errand = RefreshesUnderWay.Errand(cause: cause, presence: surroundings.signer == nil ? .nobody : .somebody)
        try await keeper.refreshes.join(errand) { () async throws(ClientProblem) in try await run(cause) }
    }

    private func run(_ cause: Cause) async throws(ClientProblem) {
        let lease = try await keeper.lease()
        defer { lease.release() }
        // Whoever had the lease before may have done it.
        try keeper.look()
        guard let login = try take(cause) else { return }
        do {
            try await renewAtLast(login.id)
        } catch {
            // Only what the authority said, and said to this request, ends a session.
            guard case .refused(let notice) = error, notice.endsSession else { throw error }
            guard try keeper.forget(usedWith: login.token, Ending(notice)) == .isGone else { return }
            throw .sessionEnded(notice)
        }
    }

    /// The login that is to be renewed; nil where another token is there already.
    private func take(_ cause: Cause) throws(ClientProblem) -> SignedIn? {
        try keeper.change { (state) throws(ClientProblem) in
            guard let login = state.login else { throw .notSignedIn }
            switch (cause, login.session) {
            case (.ranOut(let used), .device(var session)):
                guard login.token == used else { return .keep(nil) }
                guard let successor = session.successor else { return .keep(login) }
                // It was known, and so the server has it.
                session.confirm(successor.number)
                state.login?.session = .device(session)
                return .write(state.login)
            case (.ranOut(let used), .bearer): return .keep(login.token == used ? login : nil)
            // Asked again from the epoch before: where the server offers a successor, that is the one to go on with, and where
            // it says that this attempt was followed, it is the one that is kept.
            case (.isNotKnown(let used, let epoch), .device(let session)):
                return .keep(session.token == used && session.latestIs == epoch ? login : nil)
            case (.isNotKnown, .bearer): return .keep(nil)
            }
        }
    }

    /// A lost answer is asked for once more: a second copy of an attempt has the answer of the first.
    nonisolated(nonsending) private func renewAtLast(_ id: SessionID) async throws(ClientProblem) {
        var (losses, replays) = (0, 0)
        while true {
            do {
                return try await renewOnce(id)
            } catch {
                switch error {
                case .outcomeUnknown, .brokenOff: losses += 1
                case .refused(let notice) where notice.isReplay:
                    replays += 1
                    if replays > 1, try isFollowed(id) { return }
                default: throw error
                }
                guard losses < 2, losses + replays < Refresh.mostRounds else { throw error }
            }
        }
    }

    /// Whether the attempt, which was refused as a replay twice, led to an epoch that is here.
    ///
    /// A copy that was doubled on the way is refused like that, and the next, which bears another time, is not. Where that one is, too,
    /// the attempt was followed: the epoch that it led to is in use. If it is not here, it was followed by somebody else, or
    /// before this vault was put back to what it is. Another attempt tells: where nobody has used what was offered it joins
    /// the first, and else the session ends.
    private func isFollowed(_ id: SessionID) throws(ClientProblem) -> Bool {
        try keeper.change { state in
            guard case .device(var session)? = state.login?.session, session.id == id else { return .keep(true) }
            let successor = session.successor
            if let successor { session.confirm(successor.number) } else { session.abandonAttempt() }
            state.login?.session = .device(session)
            return .write(successor != nil)
        }
    }

    /// Nothing is renewed where the login has gone meanwhile: who asked finds that out when he goes on.
    nonisolated(nonsending) private func renewOnce(_ id: SessionID) async throws(ClientProblem) {
        switch try keeper.state().login?.session {
        case .device(let session)? where session.id == id: try await renewDevice(id)
        case .bearer(let session)? where session.id == id: try await renew(session)
        default: return
        }
    }

    /// Leaves the session's current epoch, whether or not a successor is known.
    nonisolated(nonsending) private func renewDevice(_ id: SessionID) async throws(ClientProblem) {
        guard let begun = try begin(id) else { return }
        let session = begun.session
        let left = session.token(of: session.current)
        let credentials = session.credentials(of: session.current, release: installation.release.keyID)
        let mac = session.current.root.requestKey.withExposedBytes { HMACSHA256(key: $0) }
        let release = installation.release.keyID.description
        let routes = AuthorityRoutes(installation: installation, surroundings: surroundings)
        let answered = try await routes.post(
            "/token", trust: .keys { _ in [credentials.keyID: credentials.key] }
        ) { (time) throws(ClientProblem) in
            let dated = time + begun.ahead
            let transcript = RefreshTranscript(
                app: begun.app, release: release, token: left, attempt: begun.attempt, time: dated
            ).bytes
            let sum = mac.authenticate(transcript.span)
            return [
                "token": .string(left.description), "attempt": .bytes(begun.attempt), "time": .integer(dated),
                "mac": .bytes(sum.indices.map { sum[$0] }), "signature": .bytes(try begun.signer.sign(transcript)),
            ]
        }
        guard answered.signer == credentials.keyID else {
            throw .notGenuine("token: not signed with the session's key")
        }
        let followed = try session.following(AnswerBody(answered.response, of: "token")) {
            (point) throws(ClientProblem) in try surroundings.sharedSecret(with: point, of: begun.keys)
        }
        try keeper.change { state in
            // Who has signed out since stays signed out, and who has signed in since keeps what is his.
            guard case .device(let now)? = state.login?.session, now.isSameAttempt(as: session) else {
                return .keep(())
            }
            state.login?.session = .device(followed)
            return .write(())
        }
    }

    /// An attempt that is kept, and so may be sent.
    private struct Begun: Sendable {
        let session: DeviceSession
        let signer: any DeviceSigner
        let keys: DeviceKeys
        let app: String
        let attempt: [UInt8]
        /// How many seconds ahead of the clock it is to be dated.
        let ahead: Int64
    }

    /// Nil where the session has gone.
    private func begin(_ id: SessionID) throws(ClientProblem) -> Begun? {
        let now = try surroundings.now()
        return try keeper.change { (state) throws(ClientProblem) in
            guard case .device(var session)? = state.login?.session, session.id == id else { return .keep(nil) }
            guard let keys = state.keys else {
                throw .vaultFailed("the vault has a session and no device keys; sign in again")
            }
            guard let app = KnownApp(installation, state).name else { throw .incomplete("the app's name is not known") }
            let signer = try surroundings.signer(keys)
            let (attempt, ahead) = session.beginRefresh(
                at: now, surroundings.random.bytes(RefreshTranscript.attemptCount))
            state.login?.session = .device(session)
            return .write(
                Begun(
                    session: session, signer: signer, keys: keys, app: app, attempt: attempt, ahead: ahead))
        }
    }

    nonisolated(nonsending) private func renew(_ begun: BearerSession) async throws(ClientProblem) {
        let routes = AuthorityRoutes(installation: installation, surroundings: surroundings)
        let trust = try installation.trustForBearerSecrets()
        let answered = try await routes.post("/token", trust: trust) { (_) throws(ClientProblem) in
            ["login_token": .string(begun.loginToken.withExposedBytes { $0.text })]
        }
        let answer = try AnswerBody(answered.response, of: "token")
        var session = begun
        session.token = try answer.secret("token")
        session.loginToken = try answer.secret("login_token")
        session.expires = try answer.number("expires")
        let renewed = SignedIn.Session.bearer(session)
        try keeper.change { state in
            guard case .bearer(let now)? = state.login?.session, now.id == begun.id else { return .keep(()) }
            state.login?.session = renewed
            return .write(())
        }
    }
}

extension DeviceSession {
    var latestIs: Refresh.Cause.Epoch { successor == nil ? .current : .successor }

    /// With what a refresh was answered: the answer names the next epoch and brings the server's half of its key.
    fileprivate func following(
        _ answer: AnswerBody, agreeing: (P256Point) throws(ClientProblem) -> Secret
    ) throws(ClientProblem) -> DeviceSession {
        let token = try answer.token()
        guard token.id == id, token.epoch == current.number + 1 else {
            throw answer.missing("token", "the one after \(self.token(of: current))")
        }
        guard let point = P256Point(try answer.bytes("ephemeral", count: P256Point.count)) else {
            throw answer.missing("ephemeral", "a point on P-256")
        }
        let agreed = try agreeing(point)
        var session = self
        session.follow(
            root: current.root.next(agreed: agreed), expires: try answer.number("expires"),
            idle: try answer.number("idle"))
        return session
    }
}

extension Notice {
    /// Whether it is the authority's own and final word about a session.
    var endsSession: Bool { isGenuine && code == Refusal.Code.sessionEnded.rawValue }

    var isReplay: Bool { isGenuine && code == Refusal.Code.replayed.rawValue }
}
