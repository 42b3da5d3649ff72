import CountersignSeal
import CountersignWire

/// Verifies that a response comes from the authority and belongs to this request. Clients act only on
/// verified responses.
package struct ResponseVerifier: Sendable {
    private let keys: [KeyID: SigningKey]

    /// The keys that may sign responses: the session's and the authority's. Never a release's secret, which
    /// every copy of the app contains.
    package init(_ keys: [KeyID: SigningKey]) { self.keys = keys }

    package enum VerificationOutcome: Sendable, Equatable {
        /// Signed by the key of that id, and bound to the request.
        case holds(KeyID)
        /// No signature with our tag: a response that the gateway passed through, or one whose signature was
        /// removed.
        case unsigned
    }

    /// Throws if the signature is wrong, names an unknown key, does not cover the components that bind it, or
    /// belongs to another body. The response's age is not checked: it is bound to a request that was signed
    /// once, with a nonce. A response that is bound by its content needs no `request`; the caller compares
    /// its content.
    package func callAsFunction(
        _ response: Response, to request: Request = Request(),
        bound binding: MessageSignatures.Binding = .request
    ) throws(Refusal) -> VerificationOutcome {
        switch try verifyHead(of: response, to: request, bound: binding) {
        case .unsigned: return .unsigned
        case .holds(let keyID, let expectation):
            try expectation.check(response.message.body.span)
            return .holds(keyID)
        }
    }

    package enum HeadOutcome: Sendable {
        /// Holds if the body matches the expectation, see ``BodyDigest``.
        case holds(KeyID, BodyExpectation)
        case unsigned
    }

    /// The same for a response whose body has not arrived yet.
    package func verifyHead(
        of response: Response, to request: Request = Request(),
        bound binding: MessageSignatures.Binding = .request
    ) throws(Refusal) -> HeadOutcome {
        var workspace = Workspace()
        guard
            let claim = try MessageSignatures().claim(
                in: response, to: request, bound: binding, workspace: &workspace)
        else {
            return .unsigned
        }
        guard let key = keys[claim.keyID] else {
            throw Refusal(.unknownKey, detail: "the answer names key \(claim.keyID), which is not known here")
        }
        guard claim.compare(with: key, workspace: workspace) == .equal else {
            throw Refusal(.badSignature, detail: "the answer's signature does not hold")
        }
        return .holds(claim.keyID, claim.body)
    }
}
