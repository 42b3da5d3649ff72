import CountersignWire

/// Requests in the name of the account that is signed in at a legacy server. If the server refuses an expired
/// token, the client renews it and sends the request again. A refused request has had no effect, so that is
/// safe. The client does not repeat a request whose response was lost: these servers cannot recognize a
/// second copy. Source: docs/protocol.md, "Bearer sessions".
package struct LegacyCalls: Sendable {
    private let account: LegacyAccount
    private let exchange: LegacyExchange

    package init(_ account: LegacyAccount) {
        self.account = account
        exchange = account.exchange
    }

    /// In whose name a request is sent.
    package enum Caller: Sendable {
        /// Fails without sending if no account is signed in.
        case user
        /// The app version alone, for requests that need no session.
        case app
    }

    /// Throws if the server says that the session is over or the app version retired, or if another account
    /// than the owner is signed in: a request is never sent in another user's name. Returns other refusals as
    /// results. `transport` is the transport of this request if it differs from the usual one; `body` says
    /// whether the body can be sent twice.
    package func send(
        _ draft: Draft, as caller: Caller = .user, of owner: SignedCalls.Owner = .currentAccount,
        over transport: (any Transport)? = nil, body: BodyUse = .repeatable
    ) async throws(ClientOperationError) -> Response {
        var (mayRenew, mayReplace) = (true, true)
        var owner = owner
        if caller == .user, case .once = body { try await account.renewIfExpired() }
        while true {
            let session = try await session(of: caller)
            if let session { owner = try owner.resolved(by: session) }
            guard !body.isUsedUp else { throw .bodyUsedUp }
            let response = try await exchange.send(draft, as: session, over: transport)
            guard
                let directive = LegacyResponseParser.directive(
                    response, unauthorized: exchange.server.tokens.unauthorized)
            else {
                return response
            }
            switch (directive, session) {
            case (.updateNeeded(let notice), _):
                throw await account.recordingUpdateStop(.updateRequired(notice))
            case (.tokenExpired(let notice), nil), (.loginNeeded(let notice), nil): throw .refused(notice)
            case (.tokenExpired(let notice), let used?):
                guard mayRenew else { throw .refused(notice) }
                mayRenew = false
                try await account.renew(leaving: used)
            case (.loginNeeded(let notice), let used?):
                // The server refuses an older token in this way although its session lives: then the client
                // tries the token that replaced it.
                guard try await !account.end(used, reason: SessionEndRecord(notice)) else {
                    throw .sessionEnded(notice)
                }
                guard mayReplace else { throw .refused(notice) }
                mayReplace = false
            }
        }
    }

    /// The signed request as it would be sent now.
    package func signed(
        _ draft: Draft, as caller: Caller = .user, of owner: SignedCalls.Owner = .currentAccount
    ) async throws(ClientOperationError) -> Draft {
        let session = try await session(of: caller)
        if let session { _ = try owner.resolved(by: session) }
        return try exchange.signed(draft, as: session)
    }

    /// The owner of a request that is made now; nil if no account is known to be signed in.
    package func owner() async -> SignedCalls.Owner? { try? await account.session().owner }

    private func session(of caller: Caller) async throws(ClientOperationError) -> LegacySession? {
        switch caller {
        case .user: return try await account.session()
        case .app:
            try await account.requireTraffic()
            return nil
        }
    }
}
