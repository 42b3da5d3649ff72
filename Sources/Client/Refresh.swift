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
/// hour later or after a crash, is the same attempt and has the same response. It stores the counter of each
/// copy before the copy is signed, so that the authority can order copies without comparing clocks. Source:
/// docs/protocol.md, "Refresh"; decision 0016.
struct Refresh: Sendable {
    let installation: Installation
    let environment: ClientEnvironment

    /// The most requests of one refresh. All of them, each as slow as a transport allows, end before a
    /// process that waits for the lease gives up.
    private static let mostRounds = 4
    /// How often one refresh takes the time from the authority's refusal.
    private static let mostCorrections = 2

    private var keeper: StateKeeper { environment.keeper }

    /// Why a request needs another token than the one it carried.
    enum Cause: Sendable, Hashable {
        /// The server knows the token, and says that it expired.
        case tokenExpired(ActiveLogin.Token)
        /// The server says that it does not know the token. It may have lost it, or may use it: a party on
        /// the path can provoke a genuine refusal with a request that it changed. So the client removes
        /// nothing.
        case unknownKey(SessionToken, Epoch)
        /// The app asks for another token.
        case request(ActiveLogin.Token)

        /// Which of a session's two epochs the token belongs to.
        enum Epoch: Sendable, Hashable { case current, successor }

        var isRefusal: Bool { if case .request = self { false } else { true } }
    }

    /// What became of a refresh that did not fail.
    enum Outcome: Sendable {
        /// The session is usable again.
        case usable
        /// Refusals provoked too many refreshes of late; nothing was sent.
        case deferred
    }

    func callAsFunction(_ cause: Cause) async throws(ClientOperationError) -> Outcome {
        // A refresh without presence must not fail for callers that have presence.
        let request = RefreshCoordinator.Request(
            cause: cause, presence: environment.signer == nil ? .absent : .present)
        return try await keeper.refreshes.join(request) { () async throws(ClientOperationError) in
            try await run(cause)
        }
    }

    private func run(_ cause: Cause) async throws(ClientOperationError) -> Outcome {
        let lease = try await keeper.lease()
        defer { lease.release() }
        // The previous holder of the lease may have refreshed already.
        try keeper.readVault()
        guard let login = try loginToRenew(for: cause) else { return .usable }
        guard try admit(login, for: cause) else { return .deferred }
        do {
            try await renewWithRepeats(login.id)
            return .usable
        } catch {
            // Only the authority's statement in response to this request ends a session.
            guard case .refused(let notice) = error, notice.endsSession else { throw error }
            guard try keeper.forget(usedWith: login.token, ending: SessionEndRecord(notice)) == .isGone else {
                return .usable
            }
            throw .sessionEnded(notice)
        }
    }

    /// Whether the refresh may begin now. A refusal of a token that is live as far as is known here may be
    /// provoked by a party on the path, so refreshes that such refusals cause are paced; others are not.
    private func admit(_ login: ActiveLogin, for cause: Cause) throws(ClientOperationError) -> Bool {
        let now = environment.time.milliseconds
        guard cause.isRefusal, login.expires > (try environment.now()),
            !login.isOfAnother(than: installation.release.keyID)
        else {
            keeper.pacer.noteExpiry(of: login.id)
            return true
        }
        return keeper.pacer.admit(login.id, at: now)
    }

    /// The login to renew; nil if another token is there already.
    private func loginToRenew(for cause: Cause) throws(ClientOperationError) -> ActiveLogin? {
        try keeper.change { (state) throws(ClientOperationError) in
            guard let login = state.login else { throw .notSignedIn }
            switch (cause, login.session) {
            case (.tokenExpired(let used), .device(var session)), (.request(let used), .device(var session)):
                guard login.token == used else { return .keep(nil) }
                guard let successor = session.successor else { return .keep(login) }
                // The server knew the token, so it has the epoch.
                session.confirm(successor.number)
                state.login?.session = .device(session)
                return .write(state.login)
            case (.tokenExpired(let used), .bearer), (.request(let used), .bearer):
                return .keep(login.token == used ? login : nil)
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
        var (losses, replays, corrections, reports) = (0, 0, 0, 0)
        while true {
            var digest: [UInt8]?
            do {
                return try await renewOnce(id, digest: &digest)
            } catch {
                switch error {
                case .transport(let failure) where failure.fate != .notSent: losses += 1
                case .refused(let notice) where notice.timeTold != nil:
                    corrections += 1
                    guard let told = notice.timeTold, corrections <= Refresh.mostCorrections else {
                        throw error
                    }
                    environment.correctClock(to: told)
                case .refused(let notice) where notice.isReplay:
                    replays += 1
                    switch try settle(notice, transcript: digest, of: id) {
                    case .successorInUse: return
                    case .ofThisDevice: break
                    case .ofAnotherHolder:
                        // Beside the bound: the report must not fail for the copies before it.
                        guard reports == 0 else { throw error }
                        reports += 1
                        continue
                    }
                default: throw error
                }
                guard losses < 2, losses + replays < Refresh.mostRounds else { throw error }
            }
        }
    }

    /// Stores what a refusal as a replay says of the session's progress. A refusal that concerns another
    /// transcript than the one of `digest` says nothing.
    private func settle(
        _ notice: RefusalNotice, transcript digest: [UInt8]?, of id: SessionID
    ) throws(ClientOperationError) -> DeviceSession.Progress {
        guard let stated = notice.refreshProgress, stated.transcript == digest else { return .ofThisDevice }
        return try keeper.change { state in
            guard case .device(var session)? = state.login?.session, session.id == id else {
                return .keep(.ofThisDevice)
            }
            let progress = session.progress(stated)
            switch progress {
            case .ofThisDevice: return .keep(progress)
            case .successorInUse: session.confirm(stated.epoch)
            case .ofAnotherHolder: session.noteReuse()
            }
            state.login?.session = .device(session)
            return .write(progress)
        }
    }

    /// Renews nothing if the login has gone meanwhile: the caller finds that out when it continues. `digest`
    /// becomes that of the transcript that was signed.
    private func renewOnce(
        _ id: SessionID, digest: inout [UInt8]?
    ) async throws(ClientOperationError) {
        switch try keeper.state().login?.session {
        case .device(let session)? where session.id == id:
            try await renewDevice(id, digest: &digest)
        case .bearer(let session)? where session.id == id: try await renew(session)
        default: return
        }
    }

    /// Leaves the session's current epoch, whether or not a successor is known.
    private func renewDevice(
        _ id: SessionID, digest: inout [UInt8]?
    ) async throws(ClientOperationError) {
        guard let begun = try begin(id) else { return }
        let session = begun.session
        let oldToken = session.token(of: session.current)
        let credentials = session.credentials(of: session.current, release: installation.release.keyID)
        let refresh = try SignedRefresh(
            of: begun.app, for: installation.release.keyID, leaving: oldToken,
            key: session.current.root.requestKey, attempt: begun.attempt, time: begun.time,
            counter: begun.counter, nonce: environment.random.bytes(RefreshTranscript.nonceCount),
            purpose: session.hasFoundReuse ? .reportReuse : .renew, signer: begun.signer)
        digest = refresh.digest
        let routes = AuthorityRoutes(installation: installation, environment: environment)
        // Not repeated here with a corrected time: that would be another transcript, which needs a counter of
        // its own.
        let answered = try await routes.postOnce(
            to: "/token", requiring: .signature { _ in [credentials.keyID: credentials.key] }
        ) { (_) throws(ClientOperationError) in refresh.body }
        guard answered.signer == credentials.keyID else {
            throw .notGenuine("token: not signed with the session's key")
        }
        let renewed = try session.adoptingSuccessor(
            from: ResponseFields(answered.response, of: "token"), by: installation.release.keyID
        ) {
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

    /// An attempt and a counter that are stored, and so may be sent.
    private struct Begun: Sendable {
        let session: DeviceSession
        let signer: any DeviceSigner
        let keys: DeviceKeys
        let app: String
        let attempt: [UInt8]
        let counter: Int64
        /// The date of this copy, whole Unix seconds.
        let time: Int64
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
            let (attempt, counter, ahead) = session.beginRefresh(
                at: now, attempt: environment.random.bytes(RefreshTranscript.attemptCount))
            state.login?.session = .device(session)
            return .write(
                Begun(
                    session: session, signer: signer, keys: keys, app: app, attempt: attempt,
                    counter: counter, time: now + ahead))
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
        from answer: ResponseFields, by release: KeyID,
        agreeing: (P256Point) throws(ClientOperationError) -> Secret
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
            root: current.root.next(agreed: agreed), release: release, expires: try answer.number("expires"),
            idle: try answer.number("idle"))
        return session
    }
}

extension RefusalNotice {
    /// Whether the authority says for good that the session has ended.
    var endsSession: Bool { isGenuine && code == Refusal.Code.sessionEnded.rawValue }

    var isReplay: Bool { isGenuine && code == Refusal.Code.replayed.rawValue }
}
