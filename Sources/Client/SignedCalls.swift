import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import struct CountersignTransport.TransportError
import CountersignWire

/// Requests in the name of the signed-in account. The client renews an expired token, corrects a wrong clock
/// and repeats the request by itself. It does not repeat a request that may have been executed, unless the
/// server recognizes the copy. Source: docs/protocol.md, "Sessions" and "Idempotent requests".
package struct SignedCalls: Sendable {
    private let installation: Installation
    private let environment: ClientEnvironment
    private let refresh: Refresh

    /// `refreshingOver` is the transport of refreshes if it differs from the requests'.
    package init(
        _ installation: Installation, environment: ClientEnvironment,
        refreshingOver other: (any Transport)? = nil
    ) {
        self.installation = installation
        self.environment = environment
        var refreshing = environment
        if let other { refreshing.transport = other }
        refresh = Refresh(installation: installation, environment: refreshing)
    }

    /// Throws ``ClientOperationError/sessionEnded(_:)`` once the authority says so, and
    /// ``ClientOperationError/accountChanged`` if the request would be sent in the name of another account
    /// than `owner`. Returns other refusals as results.
    package func send(
        _ draft: Draft, as owner: Owner = .currentAccount, ifLost: LostAnswer = .askAgain,
        body: BodyUse = .repeatable
    ) async throws(ClientOperationError) -> VerifiedResponse {
        var draft = draft
        environment.addIdempotencyKey(to: &draft)
        var hasLostCopy = false
        do {
            let result = try await sendCopies(
                draft, as: owner, ifLost: ifLost, body: body, hasLostCopy: &hasLostCopy)
            PendingLogOuts(installation: installation, environment: refresh.environment).sendInBackground()
            return result
        } catch {
            throw hasLostCopy && ifLost != .askAgainWithoutHarm ? error.withUnknownOutcome : error
        }
    }

    /// Sends copies of the request until one has a result. `hasLostCopy` becomes true once the server may
    /// have executed a copy whose response was lost.
    private func sendCopies(
        _ draft: Draft, as owner: Owner, ifLost: LostAnswer, body: BodyUse, hasLostCopy: inout Bool
    ) async throws(ClientOperationError) -> VerifiedResponse {
        var budget = RetryBudget(ifLost)
        let owner = try await prepare(owner, for: body)
        while true {
            let (state, login) = try signedIn()
            try owner.check(login)
            let result: VerifiedResponse
            do {
                result = try await sendOnce(
                    draft, login: login, state: state, proof: budget.proof(environment))
            } catch {
                guard case .transport(let failure) = error, failure.fate == .outcomeUnknown else {
                    throw error
                }
                hasLostCopy = true
                guard !body.isUsedUp, budget.spend(.resend) else { throw error }
                continue
            }
            guard let notice = result.notice else { return result }
            let action = RecoveryAction(
                for: notice, signedBy: result.signer, login: login, installation: installation)
            guard try await recover(by: action, notice: notice, login: login, budget: &budget) == .sendAgain
            else { return result }
            guard !body.isUsedUp else { throw .bodyUsedUp }
        }
    }

    /// The signed request as it would be sent now. Throws ``ClientOperationError/accountChanged`` if that
    /// would be in the name of another account than `owner`.
    package func signed(_ draft: Draft, as owner: Owner = .currentAccount) throws(ClientOperationError)
        -> Draft
    {
        var draft = draft
        environment.addIdempotencyKey(to: &draft)
        let (state, login) = try signedIn()
        try owner.check(login)
        let signer = try addCredentials(to: &draft, login: login)
        return try sender(state: state, proof: RetryBudget(.stop).proof(environment)).signed(
            draft, as: signer, at: environment.now())
    }

    /// Gets another token, whether or not the current one has expired. For tools: requests renew their token
    /// by themselves.
    package func renew() async throws(ClientOperationError) {
        _ = try await refresh(.request(try signedIn().login.token))
    }

    private enum Next { case sendAgain, giveUp }

    /// Does what a refusal asks for, each step once or twice for a request: if the refusal persists, it has
    /// another cause.
    private func recover(
        by action: RecoveryAction, notice: RefusalNotice, login: ActiveLogin, budget: inout RetryBudget
    ) async throws(ClientOperationError) -> Next {
        switch action {
        case .none: return .giveUp
        case .sessionEnded:
            let now = try environment.keeper.forget(usedWith: login.token, ending: SessionEndRecord(notice))
            guard now == .isAnother else { throw .sessionEnded(notice) }
            return budget.spend(.useReplacedToken) ? .sendAgain : .giveUp
        case .tokenExpired:
            // The first refresh may find a token that another process left so long ago that it has expired,
            // too.
            guard budget.spend(.refresh) || budget.spend(.secondRefresh) else { return .giveUp }
            return try await refresh(.tokenExpired(login.token)) == .usable ? .sendAgain : .giveUp
        case .time(let told):
            guard budget.spend(.correctClock) else { return .giveUp }
            environment.correctClock(to: told)
            return .sendAgain
        case .unknownKey(let session):
            // The second refresh concerns the token that the first one left.
            guard budget.spend(.refreshUnknownKey) || budget.spend(.secondRefreshUnknownKey) else {
                return .giveUp
            }
            return try await refreshUnknownKey(of: session)
        case .deviceSignatureRequired: return budget.spend(.addDeviceSignature) ? .sendAgain : .giveUp
        }
    }

    /// Refreshes the session. A refusal of the refresh leaves the request's own refusal as the result.
    private func refreshUnknownKey(of session: DeviceSession) async throws(ClientOperationError) -> Next {
        do {
            let outcome = try await refresh(.unknownKey(session.token, session.latestEpoch))
            return outcome == .usable ? .sendAgain : .giveUp
        } catch {
            guard case .refused = error else { throw error }
            return .giveUp
        }
    }

    /// The owner of the request. A body that can be sent only once is not sent under a token that is known to
    /// have expired, or under the key of the app's version before an update.
    private func prepare(
        _ owner: Owner, for body: BodyUse
    ) async throws(ClientOperationError) -> Owner {
        let login = try signedIn().login
        try owner.check(login)
        if case .once = body,
            login.expires <= (try environment.now())
                || login.isOfAnother(than: installation.release.keyID)
        {
            _ = try await refresh(.request(login.token))
        }
        return owner.resolved(by: login)
    }

    /// If no login is known here, another process may have signed in.
    private func signedIn() throws(ClientOperationError) -> (state: PersistedState, login: ActiveLogin) {
        let known = try environment.keeper.state()
        if let login = known.login { return (known, login) }
        let state = try environment.keeper.readVault()
        guard let login = state.login else { throw .notSignedIn }
        return (state, login)
    }

    private func addCredentials(to draft: inout Draft, login: ActiveLogin) throws(ClientOperationError)
        -> Credentials
    {
        switch login.session {
        case .device(let session):
            return session.credentials(of: session.latest, release: installation.release.keyID)
        case .bearer(let session):
            _ = try installation.requiredProofForBearerSecrets()
            draft.fields.removeAll { $0.name.lowercased() == "authorization" }
            draft.fields.append(session.authorization)
            return installation.release
        }
    }

    private func sender(state: PersistedState, proof: RetryBudget.SignatureSet) throws(ClientOperationError)
        -> SignedRequestSender
    {
        var requestSender = SignedRequestSender(environment: environment)
        if proof == .sessionAndDevice, case .device? = state.login?.session, let keys = state.keys {
            requestSender.cosigner = try environment.signer(keys)
        }
        return requestSender
    }

    private func sendOnce(
        _ draft: Draft, login: ActiveLogin, state: PersistedState, proof: RetryBudget.SignatureSet
    ) async throws(ClientOperationError) -> VerifiedResponse {
        var draft = draft
        let signer = try addCredentials(to: &draft, login: login)
        let keys =
            if case .device(let session) = login.session { session.keys() } else { [KeyID: SigningKey]() }
        let time = try environment.now()
        let sender = try sender(state: state, proof: proof)
        var result = try await sender.send(
            draft, as: signer, at: time, authority: installation.authorityKeys
        ) { _ in keys }
        if installation.connectionVouches, installation.isOwn(draft) { result.acceptUnsignedRefusal() }
        if let keyID = result.headSigner { noteConfirmed(keyID, login: login) }
        environment.confirm(time, by: result)
        if result.notice == nil { environment.keeper.announceKnown() }
        return result
    }

    /// The response is signed with the successor's key: the server has that epoch, and the client drops the
    /// earlier one. If the vault fails now, the next response proves the same; this response is not lost.
    private func noteConfirmed(_ keyID: KeyID, login: ActiveLogin) {
        guard case .device(let session) = login.session, let successor = session.successor,
            keyID == KeyID(session.token(of: successor))
        else { return }
        try? environment.keeper.change { state in
            guard case .device(var now)? = state.login?.session, now.id == session.id,
                now.successor?.number == successor.number
            else { return .keep(()) }
            now.confirm(successor.number)
            state.login?.session = .device(now)
            return .write(())
        }
    }
}

extension SignedCalls {
    /// What the client does if no response comes.
    package enum LostAnswer: Sendable {
        /// It sends the request once more: the idempotency key lets the server recognize the copy.
        case askAgain
        /// The same, for a request that has the same effect twice: the failure of the last copy is the
        /// request's failure.
        case askAgainWithoutHarm
        /// It reports that the outcome is unknown. For a request whose second copy would be refused although
        /// the first was accepted.
        case stop
    }

    /// The account of a request. Another account may sign in before the request is sent or repeated.
    package enum Owner: Sendable, Equatable {
        /// The account that is signed in when the request is first sent; its repeats use the same account.
        case currentAccount
        case account(AccountName)
        /// For a request that concerns one session, such as its end: the same account's next session is
        /// another owner.
        case session(SessionID)
        /// An account of a legacy server: ``LegacyCalls``.
        case legacyAccount(name: String, userID: Int64)

        /// Throws ``ClientOperationError/accountChanged`` if `login` belongs to another owner.
        func check(_ login: ActiveLogin) throws(ClientOperationError) {
            let isOwner =
                switch self {
                case .currentAccount: true
                case .account(let account): login.account == account
                case .session(let session): login.id == session
                case .legacyAccount: false
                }
            guard isOwner else { throw .accountChanged }
        }

        func resolved(by login: ActiveLogin) -> Owner {
            self == .currentAccount ? .account(login.account) : self
        }

        /// The same for a legacy server's session, checked.
        func resolved(by session: LegacySession) throws(ClientOperationError) -> Owner {
            guard self == .currentAccount || self == session.owner else { throw .accountChanged }
            return session.owner
        }
    }
}

/// What must be known of a body before a request with it is signed.
package enum BodyNeed: Sendable, Equatable {
    /// All of it: the scheme signs its content.
    case bytes
    /// Its MD5.
    case md5
    /// Its SHA-256.
    case sha256
    /// Nothing: the scheme does not sign it.
    case nothing
}

/// Whether a body is available for another copy of a request.
package enum BodyUse: Sendable {
    case repeatable
    /// A stream that can be read once. `isUsedUp` says whether a byte of it was read: then the client sends
    /// no further copy and throws ``ClientOperationError/bodyUsedUp``.
    case once(isUsedUp: @Sendable () -> Bool)

    var isUsedUp: Bool {
        switch self {
        case .repeatable: false
        case .once(let isUsedUp): isUsedUp()
        }
    }
}
