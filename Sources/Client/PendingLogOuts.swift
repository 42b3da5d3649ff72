import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Tells the server of sessions that ended on this device while the server could not be reached. Source:
/// docs/protocol.md, "Sessions".
package struct PendingLogOuts: Sendable {
    let installation: Installation
    private(set) var environment: ClientEnvironment

    package init(installation: Installation, environment: ClientEnvironment) {
        (self.installation, self.environment) = (installation, environment)
    }

    enum Outcome: Sendable {
        /// The server has said, under a key that proves it, that it has ended the session.
        case told
        /// It has said that the session had ended before.
        case hadEnded(RefusalNotice)
        /// It was not reached, or has not said that the session is over.
        case later
    }

    /// Begins to send all of them, if there are any, and returns at once: no request of the app's waits.
    package func sendInBackground() {
        guard environment.keeper.hasPendingLogOuts else { return }
        var logOuts = self
        // Without a signer that needs presence: telling the server must not prompt the user.
        logOuts.environment.signer = nil
        let quiet = logOuts
        environment.keeper.logOuts.begin(clock: environment.time) { await quiet.send() }
    }

    /// Sends all of them, until one does not reach the server. Returns whether none is left.
    @discardableResult
    func send() async -> Bool {
        guard let all = try? environment.keeper.state().pendingLogOuts else { return false }
        var isDone = true
        for each in all {
            do throws(ClientOperationError) {
                if case .later = try await send(each) { isDone = false }
            } catch {
                isDone = false
                if case .transport = error { return false }
            }
        }
        return isDone
    }

    /// Sends one, and forgets it once the server has said that the session is over, or long after the session
    /// has ended by itself.
    func send(_ pending: PendingLogOut) async throws(ClientOperationError) -> Outcome {
        let outcome: Outcome
        do {
            outcome = try await tell(pending)
        } catch {
            try forgetIfOver(pending)
            throw error
        }
        if case .later = outcome { try forgetIfOver(pending) } else { try forget(pending) }
        return outcome
    }

    private func tell(_ pending: PendingLogOut) async throws(ClientOperationError) -> Outcome {
        guard case .device(let device) = pending.credential else {
            return try await logOut(pending, under: nil).outcome
        }
        if device.hasFoundReuse, case .ended(let notice) = try await askUnlessSignerFails(pending) {
            return .hadEnded(notice)
        }
        let answer = try await logOut(pending, under: device.latest)
        guard case .keyRefused = answer else { return answer.outcome }
        // The server may have lost the key, a party in between may have changed the request, or another
        // holder of the device's keys has renewed the session since. A refresh tells these apart.
        switch try await askUnlessSignerFails(pending) {
        case .ended(let notice): return .hadEnded(notice)
        case .isReused:
            guard case .ended(let notice) = try await askUnlessSignerFails(pending) else { return .later }
            return .hadEnded(notice)
        case .lives: return try await logOut(pending, under: device.left).outcome
        case .unknown: return .later
        }
    }

    private func forgetIfOver(_ pending: PendingLogOut) throws(ClientOperationError) {
        // The device's own clock proves nothing: if it is ahead, the session lives.
        guard let now = environment.keeper.clock.now(environment.time), now >= pending.dropsAt else {
            return
        }
        try forget(pending)
    }

    private func forget(_ pending: PendingLogOut) throws(ClientOperationError) {
        try environment.keeper.change { state in
            let left = state.pendingLogOuts.filter { $0.session != pending.session }
            guard left.count != state.pendingLogOuts.count else { return .keep(()) }
            state.pendingLogOuts = left
            return .write(())
        }
    }
}

/// The log-out itself.
extension PendingLogOuts {
    private enum Answer {
        case told
        case hadEnded(RefusalNotice)
        /// The server says that it does not take this epoch's key.
        case keyRefused
        case later

        var outcome: Outcome {
            switch self {
            case .told: .told
            case .hadEnded(let notice): .hadEnded(notice)
            case .keyRefused, .later: .later
            }
        }
    }

    /// `epoch` is nil for a bearer session.
    private func logOut(
        _ pending: PendingLogOut, under epoch: PendingLogOut.Epoch?
    ) async throws(ClientOperationError) -> Answer {
        var hasCorrectedClock = false
        while true {
            let (result, isProof) = try await logOutOnce(pending, under: epoch)
            guard let notice = result.notice else {
                return result.response.status == 200 && isProof ? .told : .later
            }
            if let told = notice.timeTold, !hasCorrectedClock {
                environment.correctClock(to: told)
                hasCorrectedClock = true
                continue
            }
            guard notice.isGenuine else { return .later }
            switch notice.code {
            case Refusal.Code.sessionEnded.rawValue: return isProof ? .hadEnded(notice) : .later
            case Refusal.Code.tokenExpired.rawValue, Refusal.Code.unknownKey.rawValue: return .keyRefused
            // A genuine refusal may concern a copy that was changed on its way.
            default: return .later
            }
        }
    }

    /// The response, and whether a key signed it that proves what it says of the session: its own, or for a
    /// bearer session the authority's. A refusal under the authority's key may concern a request that another
    /// party changed.
    private func logOutOnce(
        _ pending: PendingLogOut, under epoch: PendingLogOut.Epoch?
    ) async throws(ClientOperationError) -> (response: VerifiedResponse, isProof: Bool) {
        var draft = installation.draft("POST", path: "/logout", body: [:])
        var keys: [KeyID: SigningKey] = [:]
        let signer: Credentials
        switch (pending.credential, epoch) {
        case (.bearer(let token), _):
            _ = try installation.requiredProofForBearerSecrets()
            draft.fields.append(
                Draft.Field(name: "Authorization", value: "Bearer \(token.withExposedBytes { $0.text })"))
            signer = installation.release
        case (.device(let device), let epoch):
            let epoch = epoch ?? device.latest
            let token = SessionToken(id: pending.session, epoch: epoch.number)
            signer = Credentials(
                token, key: SigningKey(epoch.requestKey), release: installation.release.keyID)
            keys[signer.keyID] = signer.key
        }
        environment.addIdempotencyKey(to: &draft)
        let time = try environment.now()
        let known = keys
        var result = try await SignedRequestSender(environment: environment).send(
            draft, as: signer, at: time, authority: installation.authorityKeys
        ) { _ in known }
        if installation.connectionVouches { result.acceptUnsignedRefusal() }
        environment.confirm(time, by: result)
        guard case .bearer = pending.credential else { return (result, result.signer == signer.keyID) }
        return (result, result.signer != nil || installation.connectionVouches)
    }
}

/// A refresh that asks what has become of the session. The root is gone, so its answer renews nothing here.
extension PendingLogOuts {
    private enum Progress {
        case ended(RefusalNotice)
        /// Another party holds the device's keys: stored, so that the next refresh reports it.
        case isReused
        /// The server knows this device's epoch.
        case lives
        case unknown
    }

    /// Without a signer, or with one that fails, nothing is known; the log-out itself does not need it.
    private func askUnlessSignerFails(_ pending: PendingLogOut) async throws(ClientOperationError) -> Progress
    {
        do {
            return try await ask(pending)
        } catch {
            if case .transport = error { throw error }
            return .unknown
        }
    }

    private func ask(_ pending: PendingLogOut) async throws(ClientOperationError) -> Progress {
        do {
            return try await askOnce(pending)
        } catch {
            guard case .refused(let notice) = error, let told = notice.timeTold else { throw error }
            environment.correctClock(to: told)
            return try await askOnce(pending)
        }
    }

    private func askOnce(_ pending: PendingLogOut) async throws(ClientOperationError) -> Progress {
        let state = try environment.keeper.state()
        guard let keys = state.keys, let app = AppIdentity(installation, state: state).name,
            !keys.isBoundToPresence || environment.signer?.point == keys.signingPoint
        else { return .unknown }
        guard let device = try numbered(pending.session), let attempt = device.attempt else {
            return .unknown
        }
        let left = device.left
        let token = SessionToken(id: pending.session, epoch: left.number)
        let refresh = try SignedRefresh(
            of: app, for: installation.release.keyID, leaving: token, key: left.requestKey, attempt: attempt,
            time: try environment.now(), counter: device.counter,
            nonce: environment.random.bytes(RefreshTranscript.nonceCount),
            purpose: device.hasFoundReuse ? .reportReuse : .renew, signer: try environment.signer(keys))
        let routes = AuthorityRoutes(installation: installation, environment: environment)
        do {
            _ = try await routes.postOnce(
                to: "/token",
                requiring: .signature { _ in [KeyID(token): SigningKey(left.requestKey)] }
            ) { (_) throws(ClientOperationError) in refresh.body }
            return .lives
        } catch {
            guard case .refused(let notice) = error, notice.timeTold == nil else { throw error }
            if notice.endsSession { return .ended(notice) }
            guard notice.isReplay, let stated = notice.refreshProgress, stated.transcript == refresh.digest
            else { return .unknown }
            guard stated.counter > device.counter || stated.epoch > device.latest.number else {
                return .lives
            }
            try noteReuse(of: pending.session)
            return .isReused
        }
    }

    /// The entry with the attempt and the counter of the next copy, both stored; nil if it has gone.
    private func numbered(_ session: SessionID) throws(ClientOperationError) -> PendingLogOut.Device? {
        try change(session) { device in
            device.attempt =
                device.attempt ?? environment.random.bytes(RefreshTranscript.attemptCount)
            device.counter += 1
        }
    }

    private func noteReuse(of session: SessionID) throws(ClientOperationError) {
        _ = try change(session) { $0.hasFoundReuse = true }
    }

    private func change(
        _ session: SessionID, by edit: (inout PendingLogOut.Device) -> Void
    ) throws(ClientOperationError) -> PendingLogOut.Device? {
        try environment.keeper.change { state in
            guard let index = state.pendingLogOuts.firstIndex(where: { $0.session == session }),
                case .device(var device) = state.pendingLogOuts[index].credential
            else { return .keep(nil) }
            edit(&device)
            state.pendingLogOuts[index].credential = .device(device)
            return .write(device)
        }
    }
}

/// Sends a client's pending log-outs in the background: one task at a time, and after a failure not before
/// ten seconds, then twenty, and so on up to an hour.
package final class LogOutCoordinator: Sendable {
    /// Milliseconds.
    static let firstDelay: Int64 = 10_000
    static let longestDelay: Int64 = 3_600_000

    private struct State {
        var isRunning = false
        var failures: Int64 = 0
        var earliest: Int64 = .min
    }

    private let state = Locked(State())

    /// `send` returns whether nothing is left to send.
    func begin(clock: any ClientTime, sending send: @escaping @Sendable () async -> Bool) {
        let now = clock.milliseconds
        let begins = state.with { state in
            guard !state.isRunning, now >= state.earliest else { return false }
            state.isRunning = true
            return true
        }
        guard begins else { return }
        Task.detached(priority: .utility) { [self] in
            let isDone = await send()
            end(isDone: isDone, at: clock.milliseconds)
        }
    }

    private func end(isDone: Bool, at now: Int64) {
        state.with { state in
            state.isRunning = false
            state.failures = isDone ? 0 : state.failures + 1
            state.earliest = isDone ? .min : now + LogOutCoordinator.delay(after: state.failures)
        }
    }

    private static func delay(after failures: Int64) -> Int64 {
        min(firstDelay << min(failures - 1, 16), longestDelay)
    }

    /// Whether a task runs.
    package var isRunning: Bool { state.with { $0.isRunning } }

    /// Waits until no task runs, and at most so long: for a process that ends, and for tests.
    package func settle(within limit: Duration) async {
        let clock = ContinuousClock()
        let end = clock.now + limit
        while isRunning, clock.now < end { try? await Task.sleep(for: .milliseconds(5)) }
    }
}
