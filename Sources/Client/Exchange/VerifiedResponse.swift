import CountersignSchemes
import CountersignSeal
import CountersignWire

/// A response with the result of checking its signature against the request that it answers: signed, with a
/// signed head, or unsigned. Only ``SignedRequestSender`` creates one.
package struct VerifiedResponse: Sendable {
    package let response: Response
    package let proof: Proof
    /// Milliseconds from sending the request to receiving the response.
    let took: Int64
    /// The refusal, if this is one; genuine if the authority is known to have said it. It carries the
    /// authority's time only if it is genuine and came in time.
    package private(set) var notice: RefusalNotice?
    /// Whether the authority signed with the key that follows the one that the app was built with.
    let isUnderNextAuthorityKey: Bool

    package enum Proof: Sendable {
        /// The key that signed the whole response.
        case signature(KeyID)
        /// The head of a success is signed, and the body has yet to come.
        case headSignature(BodyCheck)
        /// The response comes from a backend, or from a party in between.
        case unsigned(UnsignedReason)
    }

    /// A response whose head is signed is genuine once its body matches the head. Pass the body through a
    /// ``BodyDigest`` of `expectation`; do not trust the last bytes before the digest is finished.
    package struct BodyCheck: Sendable {
        package let signer: KeyID
        package let expectation: BodyExpectation
    }

    /// Throws ``ClientOperationError/notGenuine(_:)`` if a signature is present and wrong.
    fileprivate init(
        _ response: Response, to draft: Draft, keys: [KeyID: SigningKey], authority: AuthorityKeys,
        took: Int64
    ) throws(ClientOperationError) {
        self.response = response
        self.took = took
        do {
            (proof, isUnderNextAuthorityKey) = try Proof.verify(
                response, to: draft, with: ResponseVerifier(keys, authority: authority))
        } catch {
            throw .notGenuine(error.detail + VerifiedResponse.hint(for: error.code, authority: authority))
        }
        guard response.status >= 400 else { return }
        var notice = RefusalNotice(response)
        if signer != nil, !isRepeated {
            notice.isGenuine = true
            notice.timeTold = notice.timeTold(took: took)
        }
        self.notice = notice
    }

    /// The key that signed the whole response.
    package var signer: KeyID? {
        if case .signature(let keyID) = proof { keyID } else { nil }
    }

    /// The key that signed the response or at least its head.
    package var headSigner: KeyID? { signer ?? bodyCheck?.signer }

    package var bodyCheck: BodyCheck? {
        if case .headSignature(let check) = proof { check } else { nil }
    }

    package var unsignedReason: UnsignedReason? {
        if case .unsigned(let reason) = proof { reason } else { nil }
    }

    /// Whether this repeats the response to the request's first copy. The authority signed it anew, but the
    /// content is old and the backend's: it says nothing about the current state. Source: docs/protocol.md,
    /// "Idempotent requests".
    private var isRepeated: Bool { response.message.value(of: "countersign-replayed") != nil }

    /// Takes an unsigned refusal as genuine. For the authority's own routes, over a connection whose
    /// certificate proves the authority (``Installation/connectionVouches``).
    mutating func acceptUnsignedRefusal() {
        if unsignedReason != nil { notice?.isGenuine = true }
    }

    /// A wrong authority key shows itself in no other way: the client can verify nothing that the server
    /// signs.
    private static func hint(for code: Refusal.Code, authority: AuthorityKeys) -> String {
        guard code == .badSignature, !authority.areUnknown else { return "" }
        if authority.current == nil {
            return
                "; if no answer of this server verifies, it signs with its former authority key again: this "
                + "client has seen an answer under the next one, and accepts the former one no longer"
        }
        return
            "; if no answer of this server verifies, "
            + "the authority key of the release key is another server's, or the server rotated it since: "
            + "expected the `authority_key` and `next_authority_key` that `countersign release add` prints"
    }
}

extension VerifiedResponse.Proof {
    /// The proof, and whether the authority's next key made it.
    fileprivate static func verify(
        _ response: Response, to draft: Draft, with verifier: ResponseVerifier
    ) throws(Refusal) -> (proof: Self, isUnderNext: Bool) {
        do {
            // The response to HEAD has no content, whatever a server in between added.
            guard response.message.isBodyWhole else {
                return try verifyHead(of: response, to: draft, with: verifier)
            }
            return switch try verifier(response, to: draft.request()) {
            case .holds(let keyID): (.signature(keyID), false)
            case .holdsUnderNext(let keyID): (.signature(keyID), true)
            case .unsigned: (.unsigned(.noSignature), false)
            }
        } catch {
            // A key that is not known here proves nothing, for or against.
            guard error.code == .unknownKey else { throw error }
            return (.unsigned(.unknownKey(error.detail)), false)
        }
    }

    /// A refusal whose body is not held whole has no effect.
    private static func verifyHead(
        of response: Response, to draft: Draft, with verifier: ResponseVerifier
    ) throws(Refusal) -> (proof: Self, isUnderNext: Bool) {
        guard response.status < 400 else { return (.unsigned(.tooLong), false) }
        return switch try verifier.verifyHead(of: response, to: draft.request()) {
        case .holds(let keyID, let expectation):
            (.headSignature(VerifiedResponse.BodyCheck(signer: keyID, expectation: expectation)), false)
        case .holdsUnderNext(let keyID, let expectation):
            (.headSignature(VerifiedResponse.BodyCheck(signer: keyID, expectation: expectation)), true)
        case .unsigned: (.unsigned(.noSignature), false)
        }
    }
}

/// Why a response counts as unsigned.
package enum UnsignedReason: Sendable, Hashable {
    /// It has no signature of ours.
    case noSignature
    /// It has a signature by a key that is not known here; the text names the key.
    case unknownKey(String)
    /// It is a refusal whose body is too long to hold and check.
    case tooLong

    /// One clause, for an error's text.
    package var detail: String {
        switch self {
        case .noSignature: "it bears no signature"
        case .unknownKey(let detail): detail
        case .tooLong: "it is too long to be looked at"
        }
    }
}

/// Sends a signed request and verifies the response.
struct SignedRequestSender: Sendable {
    let environment: ClientEnvironment
    /// Adds the device's signature to a session's requests; nil if the session's signature is enough.
    var cosigner: (any DeviceSigner)?

    /// Signs `draft`, sends it once and verifies the response. `authority` and the result of `keys` may have
    /// signed it; a session's keys are known only from the response itself at a login. Throws
    /// ``ClientOperationError/notGenuine(_:)`` if a signature is present and wrong.
    func send(
        _ draft: Draft, as credentials: Credentials, at time: Int64, authority: AuthorityKeys,
        keys: (Response) -> [KeyID: SigningKey] = { _ in [:] }
    ) async throws(ClientOperationError) -> VerifiedResponse {
        // Determined before the request is sent: a response that the former key signed may still arrive after
        // the first one under the next key, if its request was sent before.
        let authority = try environment.keeper.accepted(of: authority)
        let draft = try signed(draft, as: credentials, at: time)
        let began = environment.time.milliseconds
        let response: Response
        do {
            response = try await environment.transport.send(draft)
        } catch {
            throw .transport(error)
        }
        let took = environment.time.milliseconds - began
        let verified = try VerifiedResponse(
            response, to: draft, keys: keys(response), authority: authority, took: took)
        if verified.isUnderNextAuthorityKey { environment.keeper.noteUse(of: authority.next) }
        return verified
    }

    func signed(_ draft: Draft, as credentials: Credentials, at time: Int64) throws(ClientOperationError)
        -> Draft
    {
        var draft = draft
        let nonce = Base64.encode(environment.random.bytes(16).span, as: .url)
        do {
            try environment.keeper.workspaces.with { (workspace) throws(Refusal) in
                try MessageSignatures().sign(
                    &draft, as: credentials, at: time, nonce: nonce, workspace: &workspace)
            }
        } catch {
            throw .incomplete("the request cannot be signed: \(error.detail)")
        }
        if let cosigner { try cosigner.sign(&draft, keyID: credentials.keyID, at: time) }
        return draft
    }
}
