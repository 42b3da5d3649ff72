import CountersignWire

/// The authority's routes for who is signed in. An answer that is not the authority's own is no answer here.
struct OwnRoutes: Sendable {
    let installation: Installation
    let surroundings: Surroundings

    nonisolated(nonsending) func ask(
        _ method: String, _ path: String, _ body: JSONValue? = nil,
        as owner: SignedCalls.Owner = .whoeverIsSignedIn, ifLost: SignedCalls.LostAnswer = .askAgain
    ) async throws(ClientProblem) -> AnswerBody {
        let draft = installation.draft(method, path, body)
        let answered = try await SignedCalls(installation, surroundings).send(draft, as: owner, ifLost: ifLost)
        if let notice = answered.notice {
            throw notice.isGenuine && notice.isOfWrongCredentials ? .wrongCredentials : .refused(notice)
        }
        guard answered.signer != nil || installation.connectionVouches else {
            throw .notGenuine("\(path): \(answered.doubt?.detail ?? "its body is still to come")")
        }
        return try AnswerBody(answered.response, of: path)
    }
}
