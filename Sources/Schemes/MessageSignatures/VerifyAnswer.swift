import CountersignSeal
import CountersignWire

/// Is this answer ours, and to this request? For clients, which act only on answers that are.
package struct VerifyAnswer: Sendable {
    private let keys: [KeyID: SigningKey]

    /// The keys that answers may be signed with: a session's own, and the authority's. Never a release's
    /// secret: whoever has the app has it.
    package init(_ keys: [KeyID: SigningKey]) { self.keys = keys }

    package enum Finding: Sendable, Equatable {
        /// Signed by the key of that id, and bound to the request.
        case holds(KeyID)
        /// No signature with our tag: an answer that passed through, or one on which it was taken off.
        case unsigned
    }

    /// Throws where the signature is wrong, names a key that is not known, leaves out what binds it, or is of another body.
    /// Its age is not judged: it is bound to a request that was signed once, with a nonce. One that is bound by its content
    /// needs no request; who asked compares what it says.
    package func callAsFunction(
        _ response: Response, to request: Request = Request(), bound binding: MessageSignatures.Binding = .request
    ) throws(Refusal) -> Finding {
        switch try head(response, to: request, bound: binding) {
        case .unsigned: return .unsigned
        case .holds(let keyID, let expectation):
            try expectation.check(response.message.body.span)
            return .holds(keyID)
        }
    }

    package enum HeadFinding: Sendable {
        /// The same, once the body turns out to be what is expected of it: see ``BodyDigest``.
        case holds(KeyID, BodyExpectation)
        case unsigned
    }

    /// The same for an answer whose body is still to come.
    package func head(
        _ response: Response, to request: Request = Request(), bound binding: MessageSignatures.Binding = .request
    ) throws(Refusal) -> HeadFinding {
        var workspace = Workspace()
        guard let claim = try MessageSignatures().claim(in: response, to: request, bound: binding, &workspace) else {
            return .unsigned
        }
        guard let key = keys[claim.keyID] else {
            throw Refusal(.unknownKey, "the answer names key \(claim.keyID), which is not known here")
        }
        guard claim.compare(with: key, workspace) == .equal else {
            throw Refusal(.badSignature, "the answer's signature does not hold")
        }
        return .holds(claim.keyID, claim.body)
    }
}
