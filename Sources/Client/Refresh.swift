import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import struct CountersignTransport.TransportError
import CountersignVault
import CountersignWire

/// Renews the keys or tokens of a session, once for all callers: callers in this process share one refresh,
/// and of all processes the one that holds the vault's lease does it; the others find the result.
///
/// A response may be lost at any point. The vault stores the attempt before it is sent, so that a repeat, an
/// hour later or after a crash, is the same attempt and has the same response. Source: docs/protocol.md,
/// "Refresh".
struct Refresh: Sendable {
    let installation: Installation
    let environment: ClientEnvironment

    /// The most requests of one refresh. All of them, each as slow as a transport allows, end before a
    /// process that waits for the lease gives up.
    private static let mostRounds = 4

    private var keeper: StateKeeper { environment.keeper }

    /// Why a request needs another token than the one it carried.
    enum Cause: Sendable, Hashable {
        /// The server knows the token, and says that it expired.
        case tokenExpired(ActiveLogin.Token)
        /// The server says that it does not know the token. It may have lost it, or may use it: a party on
        /// the path can provoke a genuine refusal with a request that it changed. So the client removes
        /// nothing.
        case unknownKey(SessionToken, Epoch)

        /// Which of a session's two epochs the token belongs to.
        enum Epoch: Sendable, Hashable { case current, successor }
    }

    /// Returns once the session is usable again.
    func callAsFunction(_ cause: Cause) async throws(ClientOperationError) {
        // A refresh without presence must not fail for callers that have presence.
        let request = RefreshCoordinator.Request(
            cause: cause, presence: environment.signer == nil ? .absent : .present)
        try await keeper.refreshes.join(request) { () async throws(ClientOperationError) in
            try await run(cause)
        }
    }

    private func run(_ cause: Cause) async throws(ClientOperationError) {
        let lease = try await keeper.lease()
        defer { lease.release() }
        // The previous holder of the lease may have refreshed already.
        try keeper.readVault()
        guard let login = try loginToRenew(for: cause) else { return }
        do {
            try await renewWithRepeats(login.id)
        } catch {
            // Only the authority's statement in response to this request ends a session.
            guard case .refused(let notice) = error, notice.endsSession else { throw error }
            guard try keeper.forget(usedWith: login.token, ending: SessionEndRecord(notice)) == .isGone else {
                return
            }
            throw .sessionEnded(notice)
        }
    }

    /// The login to renew; nil if another token is there already.
    private func loginToRenew(for cause: Cause) throws(ClientOperationError) -> ActiveLogin? {
        try keeper.change { (state) throws(ClientOperationError) in
            guard let login = state.login else { throw .notSignedIn }
            switch (cause, login.session) {
            case (.tokenExpired(let used), .device(var session)):
                guard login.token == used else { return .keep(nil) }
                guard let successor = session.successor else { return .keep(login) }
                // The server knew the token, so it has the epoch.
                session.confirm(successor.number)
                state.login?.session = .device(session)
                return .write(state.login)
            case (.tokenExpired(let used), .bearer): return .keep(login.token == used ? login : nil)
            // Repeats the attempt from the epoch before: if the server offers a successor, the client
            // continues with that; if it says that this attempt's epoch is in use, the client keeps the
            // stored successor.
            case (.unknownKey(let used, let epoch), .device(let session)):
                return .keep(session.token == used && session.latestEpoch == epoch ? login : nil)
            case (.unknownKey, .bearer): return .keep(nil)
            }
        }
    }

    /// Repeats the request if its response was lost: a second copy of an attempt gets the response of the
    /// first.
    private func renewWithRepeats(_ id: SessionID) async throws(ClientOperationError) {
        var (losses, replays) = (0, 0)
        while true {
            do {
                return try await renewOnce(id)
            } catch {
                switch error {
                case .transport(let failure) where failure.fate != .notSent: losses += 1
                case .refused(let notice) where notice.isReplay:
                    replays += 1
                    if replays > 1, try settleReplayedAttempt(of: id) { return }
                default: throw error
                }
                guard losses < 2, losses + replays < Refresh.mostRounds else { throw error }
            }
        }
    }

    /// Returns whether the epoch that the replayed attempt led to is stored here.
    ///
    /// The server refuses a copy that was duplicated on the way as a replay, but not the next copy, which
    /// carries another time. If it refuses that one, too, the epoch that the attempt led to is in use. If it
    /// is not stored here, another client uses it, or this vault was restored to an earlier state. Another
    /// attempt decides: if the offered epoch is unused, the attempt joins the first; otherwise the session
    /// ends.
    private func settleReplayedAttempt(of id: SessionID) throws(ClientOperationError) -> Bool {
        try keeper.change { state in
            guard case .device(var session)? = state.login?.session, session.id == id else {
                return .keep(true)
            }
            let successor = session.successor
            if let successor { session.confirm(successor.number) } else { session.abandonAttempt() }
            state.login?.session = .device(session)
            return .write(successor != nil)
        }
    }

    /// Renews nothing if the login has gone meanwhile: the caller finds that out when it continues.
    private func renewOnce(_ id: SessionID) async throws(ClientOperationError) {
        switch try keeper.state().login?.session {
        case .device(let session)? where session.id == id: try await renewDevice(id)
        case .bearer(let session)? where session.id == id: try await renew(session)
        default: return
        }
    }

    /// Leaves the session's current epoch, whether or not a successor is known.
    private func renewDevice(_ id: SessionID) async throws(ClientOperationError) {
        guard let begun = try begin(id) else { return }
        let session = begun.session
        let oldToken = session.token(of: session.current)
        let credentials = session.credentials(of: session.current, release: installation.release.keyID)
        let mac = session.current.root.requestKey.withExposedBytes { HMACSHA256(key: $0) }
        let release = installation.release.keyID.description
        let routes = AuthorityRoutes(installation: installation, environment: environment)
        let answered = try await routes.post(
            to: "/token", requiring: .signature { _ in [credentials.keyID: credentials.key] }
        ) { (time) throws(ClientOperationError) in
            let dated = time + begun.ahead
            let transcript = RefreshTranscript(
                app: begun.app, release: release, token: oldToken, attempt: begun.attempt, time: dated
            ).bytes
            let sum = mac.authenticate(transcript.span)
            return [
                "token": .string(oldToken.description), "attempt": .bytes(begun.attempt),
                "time": .integer(dated),
                "mac": .bytes(sum.indices.map { sum[$0] }),
                "signature": .bytes(try begun.signer.sign(transcript)),
            ]
        }
        guard answered.signer == credentials.keyID else {
            throw .notGenuine("token: not signed with the session's key")
        }
        let renewed = try session.adoptingSuccessor(from: ResponseFields(answered.response, of: "token")) {
            (point) throws(ClientOperationError) in try environment.sharedSecret(with: point, of: begun.keys)
        }
        try keeper.change { state in
            // A sign-out since then stands, and a login since then keeps its session.
            guard case .device(let now)? = state.login?.session, now.isSameAttempt(as: session) else {
                return .keep(())
            }
            state.login?.session = .device(renewed)
            return .write(())
        }
    }

    /// An attempt that is stored, and so may be sent.
    private struct Begun: Sendable {
        let session: DeviceSession
        let signer: any DeviceSigner
        let keys: DeviceKeys
        let app: String
        let attempt: [UInt8]
        /// By how many seconds the request's date is ahead of the clock.
        let ahead: Int64
    }

    /// Nil if the session has gone.
    private func begin(_ id: SessionID) throws(ClientOperationError) -> Begun? {
        let now = try environment.now()
        return try keeper.change { (state) throws(ClientOperationError) in
            guard case .device(var session)? = state.login?.session, session.id == id else {
                return .keep(nil)
            }
            guard let keys = state.keys else {
                throw .vaultFailed("the vault has a session and no device keys; sign in again")
            }
            guard let app = AppIdentity(installation, state: state).name else {
                throw .incomplete("the app's name is not known")
            }
            let signer = try environment.signer(keys)
            let (attempt, ahead) = session.beginRefresh(
                at: now, attempt: environment.random.bytes(RefreshTranscript.attemptCount))
            state.login?.session = .device(session)
            return .write(
                Begun(
                    session: session, signer: signer, keys: keys, app: app, attempt: attempt, ahead: ahead))
        }
    }

    private func renew(_ begun: BearerSession) async throws(ClientOperationError) {
        let routes = AuthorityRoutes(installation: installation, environment: environment)
        let proof = try installation.requiredProofForBearerSecrets()
        let answered = try await routes.post(to: "/token", requiring: proof) {
            (_) throws(ClientOperationError) in
            ["login_token": .string(begun.loginToken.withExposedBytes { $0.text })]
        }
        let answer = try ResponseFields(answered.response, of: "token")
        var session = begun
        session.token = try answer.secret("token")
        session.loginToken = try answer.secret("login_token")
        session.expires = try answer.number("expires")
        let renewed = ActiveLogin.Session.bearer(session)
        try keeper.change { state in
            guard case .bearer(let now)? = state.login?.session, now.id == begun.id else { return .keep(()) }
            state.login?.session = renewed
            return .write(())
        }
    }
}

extension DeviceSession {
    var latestEpoch: Refresh.Cause.Epoch { successor == nil ? .current : .successor }

    /// The session after a refresh: the response names the next epoch and brings the server's half of its
    /// key.
    fileprivate func adoptingSuccessor(
        from answer: ResponseFields, agreeing: (P256Point) throws(ClientOperationError) -> Secret
    ) throws(ClientOperationError) -> DeviceSession {
        let token = try answer.token()
        guard token.id == id, token.epoch == current.number + 1 else {
            throw answer.missing("token", expected: "the one after \(self.token(of: current))")
        }
        guard let point = P256Point(try answer.bytes("ephemeral", count: P256Point.count)) else {
            throw answer.missing("ephemeral", expected: "a point on P-256")
        }
        let agreed = try agreeing(point)
        var session = self
        session.adoptSuccessor(
            root: current.root.next(agreed: agreed), expires: try answer.number("expires"),
            idle: try answer.number("idle"))
        return session
    }
}

extension RefusalNotice {
    /// Whether the authority says for good that the session has ended.
    var endsSession: Bool { isGenuine && code == Refusal.Code.sessionEnded.rawValue }

    var isReplay: Bool { isGenuine && code == Refusal.Code.replayed.rawValue }
}
