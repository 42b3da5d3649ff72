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

    /// Throws where the server says that the session is over, or the app version retired, or where somebody else has signed in since the
    /// first copy: what one user wished is not done in another's name. Other refusals are answers.
    nonisolated(nonsending) package func send(
        _ draft: Draft, as caller: Caller = .user
    ) async throws(LegacyProblem) -> Response {
        var (mayRenew, mayReplace) = (true, true)
        var first: LegacySession?
        while true {
            let session = try await session(of: caller)
            if let first, let session, !session.isOf(first) { throw .accountChanged }
            first = first ?? session
            let response = try await exchange.send(draft, as: session)
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
        _ draft: Draft, as caller: Caller = .user
    ) async throws(LegacyProblem) -> Draft {
        try exchange.signed(draft, as: try await session(of: caller))
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
