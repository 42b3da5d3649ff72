import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Requests in the name of an app version alone, with nobody signed in. A clock that is wrong is corrected, by the authority's
/// signed word, and the request sent again. Source: docs/protocol.md, "Time".
package struct ReleaseCalls: Sendable {
    private let installation: Installation
    private let surroundings: Surroundings

    package init(_ installation: Installation, _ surroundings: Surroundings) {
        self.installation = installation
        self.surroundings = surroundings
    }

    nonisolated(nonsending) package func send(
        _ draft: Draft, body: BodyUse = .repeatable
    ) async throws(ClientProblem) -> SignedCalls.Answered {
        let first = try await sendOnce(draft)
        guard let told = first.notice?.timeTold else { return first }
        surroundings.learn(told)
        // A refusal speaks for one copy. Who stands in between may have had another one done before.
        guard draft.mayBeSentAgain else { return first }
        guard !body.isUsedUp else { throw .bodyUsedUp }
        return try await sendOnce(draft)
    }

    /// The request as it would be sent now.
    package func signed(_ draft: Draft) throws(ClientProblem) -> Draft {
        try Listener(surroundings: surroundings).signed(draft, as: installation.release, at: surroundings.now())
    }

    nonisolated(nonsending) private func sendOnce(_ draft: Draft) async throws(ClientProblem) -> SignedCalls.Answered {
        let time = try surroundings.now()
        let keys = installation.authorityKeys
        let heard = try await Listener(surroundings: surroundings).ask(
            draft, as: installation.release, at: time
        ) { _ in keys }
        surroundings.confirm(time, by: heard)
        return SignedCalls.Answered(heard)
    }
}

extension Draft {
    /// Whether a second copy does no more than one does: it changes nothing, or the server can tell.
    fileprivate var mayBeSentAgain: Bool {
        ["GET", "HEAD"].contains(method) || fields.contains { $0.name.lowercased() == "idempotency-key" }
    }
}
