import CountersignWire

/// Requests in the name of who is signed in at a legacy server. A token that ran out is renewed and the request sent again, without
/// anybody's noticing. What the server refused it has not done, so that is safe; a request whose answer was lost is not sent again: these
/// servers cannot tell a second copy from a second wish. Source: legacy, L6.
package struct LegacyCalls: Sendable {
    private let account: LegacyAccount
    private let exchange: LegacyExchange

    package init(_ account: LegacyAccount) {
        self.account = account
        exchange = account.exchange
    }

    /// In whose name a request goes.
    package enum Caller: Sendable {
        /// Nothing is sent where nobody is signed in.
        case user
        /// The app version alone, for what needs no session.
        case app
    }

    /// Whose a request is. Whatever takes time before it is sent, or before it is sent again, somebody else
    /// may sign in meanwhile.
    package enum Owner: Sendable, Equatable {
        /// Of whoever is signed in when it is sent first; its other copies are his, too.
        case whoeverIsSignedIn
        case account(name: String, userID: Int64)

        fileprivate func settled(by session: LegacySession) throws(LegacyProblem) -> Owner {
            let his = Owner.account(name: session.account, userID: session.userID)
            guard self == .whoeverIsSignedIn || self == his else { throw .accountChanged }
            return his
        }
    }

    /// Throws where the server says that the session is over, or the app version retired, or where somebody
    /// else than the owner is signed in: what one user wished is not done in another's name. Other refusals
    /// are answers. `transport` is the way of this request, where that is another than all others'; `body`
    /// says whether it can go that way twice.
    nonisolated(nonsending) package func send(
        _ draft: Draft, as caller: Caller = .user, of owner: Owner = .whoeverIsSignedIn,
        over transport: (any Transport)? = nil, body: BodyUse = .repeatable
    ) async throws(LegacyProblem) -> Response {
        var (mayRenew, mayReplace) = (true, true)
        var owner = owner
        if caller == .user, case .once = body { try await account.renewIfOut() }
        while true {
            let session = try await session(of: caller)
            if let session { owner = try owner.settled(by: session) }
            guard !body.isUsedUp else { throw .bodyUsedUp }
            let response = try await exchange.send(draft, as: session, over: transport)
            guard let directive = LegacyAnswer.directive(response, exchange.server.tokens.unauthorized) else {
                return response
            }
            switch (directive, session) {
            case (.updateNeeded(let notice), _):
                throw await account.heeded(.updateRequired(notice))
            case (.tokenRanOut(let notice), nil), (.loginNeeded(let notice), nil): throw .refused(notice)
            case (.tokenRanOut(let notice), let used?):
                guard mayRenew else { throw .refused(notice) }
                mayRenew = false
                try await account.renew(leaving: used)
            case (.loginNeeded(let notice), let used?):
                // An older token is refused like that although its session lives: then the one that took its place is tried.
                if try await account.end(used, .ended(notice)) { throw .sessionEnded(notice) }
                guard mayReplace else { throw .refused(notice) }
                mayReplace = false
            }
        }
    }

    /// The request as it would be sent now.
    nonisolated(nonsending) package func signed(
        _ draft: Draft, as caller: Caller = .user, of owner: Owner = .whoeverIsSignedIn
    ) async throws(LegacyProblem) -> Draft {
        let session = try await session(of: caller)
        if let session { _ = try owner.settled(by: session) }
        return try exchange.signed(draft, as: session)
    }

    /// Whose a request is that is made now; nil where nobody is known to be signed in.
    nonisolated(nonsending) package func owner() async -> Owner? {
        guard let session = try? await account.session() else { return nil }
        return .account(name: session.account, userID: session.userID)
    }

    nonisolated(nonsending) private func session(of caller: Caller) async throws(LegacyProblem) -> LegacySession? {
        switch caller {
        case .user: return try await account.session()
        case .app:
            try await account.requireTraffic()
            return nil
        }
    }
}
