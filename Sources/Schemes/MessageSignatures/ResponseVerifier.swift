import CountersignSeal
import CountersignWire

/// Verifies that a response comes from the authority and belongs to this request. Clients act only on
/// verified responses.
package struct ResponseVerifier: Sendable {
    private let keys: [KeyID: SigningKey]
    private let authority: AuthorityKeys

    /// The keys that may sign responses: the session's and the authority's. Never a release's secret, which
    /// every copy of the app contains.
    package init(_ keys: [KeyID: SigningKey], authority: AuthorityKeys = .unknown) {
        (self.keys, self.authority) = (keys, authority)
    }

    package enum VerificationOutcome: Sendable, Equatable {
        /// Signed by the key of that id, and bound to the request.
        case holds(KeyID)
        /// The same, by the next key of that id: the authority has rotated to it.
        case holdsUnderNext(KeyID)
        /// No signature with our tag: a response that the gateway passed through, or one whose signature was
        /// removed.
        case unsigned
    }

    /// Throws if the signature is wrong, names an unknown key, does not cover the components that bind it, or
    /// belongs to another body. The response's age is not checked: it is bound to a request that was signed
    /// once, with a nonce. A response that is bound by its content needs no `request`; the caller compares
    /// its content. `request` is made only for a response that bears a signature.
    package func callAsFunction(
        _ response: Response, to request: @autoclosure () -> Request = Request(),
        bound binding: MessageSignatures.Binding = .request
    ) throws(Refusal) -> VerificationOutcome {
        let head = try verifyHead(of: response, to: request(), bound: binding)
        if let expectation = head.expectation {
            try expectation.check(response.message.body.span)
        }
        return head.outcome
    }

    package enum HeadOutcome: Sendable {
        /// Holds if the body matches the expectation, see ``BodyDigest``.
        case holds(KeyID, BodyExpectation)
        /// The same, by the next key of that id.
        case holdsUnderNext(KeyID, BodyExpectation)
        case unsigned

        fileprivate var expectation: BodyExpectation? {
            switch self {
            case .holds(_, let expectation), .holdsUnderNext(_, let expectation): expectation
            case .unsigned: nil
            }
        }

        fileprivate var outcome: VerificationOutcome {
            switch self {
            case .holds(let keyID, _): .holds(keyID)
            case .holdsUnderNext(let keyID, _): .holdsUnderNext(keyID)
            case .unsigned: .unsigned
            }
        }
    }

    /// The same for a response whose body has not arrived yet.
    package func verifyHead(
        of response: Response, to request: @autoclosure () -> Request = Request(),
        bound binding: MessageSignatures.Binding = .request
    ) throws(Refusal) -> HeadOutcome {
        guard try MessageSignatures.signs(response) else { return .unsigned }
        var workspace = Workspace()
        guard
            let claim = try MessageSignatures().claim(
                in: response, to: request(), bound: binding, workspace: &workspace)
        else {
            return .unsigned
        }
        let isAuthoritys = claim.keyID == KeyID(MessageSignatures.authorityKeyID) && !authority.areUnknown
        let (key, next) = isAuthoritys ? (authority.current, authority.next) : (keys[claim.keyID], nil)
        guard key != nil || next != nil else {
            throw Refusal(
                .unknownKey, detail: "the answer names key \(claim.keyID), which is not known here")
        }
        if let key, claim.compare(with: key, workspace: workspace) == .equal {
            return .holds(claim.keyID, claim.body)
        }
        if let next, claim.compare(with: next, workspace: workspace) == .equal {
            return .holdsUnderNext(claim.keyID, claim.body)
        }
        throw Refusal(.badSignature, detail: "the answer's signature does not hold")
    }
}
