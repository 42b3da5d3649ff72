import CountersignSchemes
import CountersignSeal
import CountersignWire

/// A response, classified by whether the client may act on it.
enum VerifiedResponse: Sendable {
    case genuine(GenuineResponse)
    /// The head of a success is verified. The body is verified once it matches the digest in the head.
    case verifiedHead(Response, SignedCalls.BodyCheck)
    /// The response has no signature of ours, or none that can be verified here: it comes from a backend, or
    /// from a party in between.
    case unsigned(Response, why: UnsignedReason)
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

/// A response that the authority gave to exactly this request. Only ``SignedRequestSender`` creates one.
struct GenuineResponse: Sendable {
    let response: Response
    /// The key that signed it.
    let keyID: KeyID
    /// Milliseconds from sending the request to receiving the response.
    let took: Int64

    fileprivate init(_ response: Response, keyID: KeyID, took: Int64) {
        self.response = response
        self.keyID = keyID
        self.took = took
    }

    /// Whether this repeats the response to the request's first copy. The authority signed it anew, but the
    /// content is old and the backend's: it says nothing about the current state. Source: docs/protocol.md,
    /// "Idempotent requests".
    private var isRepeated: Bool { response.message.value(of: "countersign-replayed") != nil }

    /// Nil for a success. The notice carries the authority's time only if the refusal is genuine and came in
    /// time.
    var notice: RefusalNotice? {
        guard response.status >= 400 else { return nil }
        var notice = RefusalNotice(response)
        guard !isRepeated else { return notice }
        notice.isGenuine = true
        notice.timeTold = notice.timeTold(took: took)
        return notice
    }
}

/// Sends a signed request and verifies the response.
struct SignedRequestSender: Sendable {
    let environment: ClientEnvironment
    /// Adds the device's signature to a session's requests; nil if the session's signature is enough.
    var cosigner: (any DeviceSigner)?

    /// Signs `draft` and sends it once. `keys` returns the keys that may have signed the response; for a
    /// login they are known only from the response itself. Throws ``ClientOperationError/notGenuine(_:)`` if
    /// a signature is present and wrong.
    func send(
        _ draft: Draft, as credentials: Credentials, at time: Int64,
        keys: (Response) -> [KeyID: SigningKey]
    ) async throws(ClientOperationError) -> VerifiedResponse {
        let draft = try signed(draft, as: credentials, at: time)
        let began = environment.time.milliseconds
        let response: Response
        do {
            response = try await environment.transport.send(draft)
        } catch {
            throw ClientOperationError(error)
        }
        let took = environment.time.milliseconds - began
        return try SignedRequestSender.judge(response, to: draft, keys: keys(response), took: took)
    }

    func signed(_ draft: Draft, as credentials: Credentials, at time: Int64) throws(ClientOperationError)
        -> Draft
    {
        var draft = draft
        let nonce = Base64.encode(environment.random.bytes(16).span, as: .url)
        do {
            try MessageSignatures().sign(&draft, as: credentials, at: time, nonce: nonce)
        } catch {
            throw .incomplete("the request cannot be signed: \(error.detail)")
        }
        if let cosigner { try cosigner.sign(&draft, keyID: credentials.keyID, at: time) }
        return draft
    }

    private static func judge(
        _ response: Response, to draft: Draft, keys: [KeyID: SigningKey], took: Int64
    ) throws(ClientOperationError) -> VerifiedResponse {
        // The response to HEAD has no content, whatever a server in between added.
        do {
            guard response.message.isBodyWhole else {
                return try judgeHead(of: response, to: draft, keys: keys)
            }
            switch try ResponseVerifier(keys)(response, to: draft.request()) {
            case .holds(let keyID): return .genuine(GenuineResponse(response, keyID: keyID, took: took))
            case .unsigned: return .unsigned(response, why: .noSignature)
            }
        } catch {
            // A key that is not known here proves nothing, for or against.
            if error.code == .unknownKey { return .unsigned(response, why: .unknownKey(error.detail)) }
            throw .notGenuine(error.detail + SignedRequestSender.hint(for: error.code, keys: keys))
        }
    }

    /// A wrong authority key shows itself in no other way: the client can verify nothing that the server
    /// signs.
    private static func hint(for code: Refusal.Code, keys: [KeyID: SigningKey]) -> String {
        let isKnown = KeyID(MessageSignatures.authorityKeyID).map { keys[$0] != nil } ?? false
        guard code == .badSignature, isKnown else { return "" }
        return
            "; if no answer of this server verifies, "
            + "the authority key of the release key is another server's: "
            + "expected the `authority_key` that `countersign release add` printed"
    }

    /// A refusal whose body is not held whole has no effect.
    private static func judgeHead(
        of response: Response, to draft: Draft, keys: [KeyID: SigningKey]
    ) throws(Refusal) -> VerifiedResponse {
        guard response.status < 400 else { return .unsigned(response, why: .tooLong) }
        switch try ResponseVerifier(keys).verifyHead(of: response, to: draft.request()) {
        case .holds(let keyID, let expectation):
            return .verifiedHead(response, SignedCalls.BodyCheck(signer: keyID, expectation: expectation))
        case .unsigned: return .unsigned(response, why: .noSignature)
        }
    }
}

extension SignedCalls {
    /// A response, and the key that signed it.
    package struct CallResult: Sendable {
        package let response: Response
        /// Nil for a response that the authority did not sign, such as a backend's that passes through.
        package let signer: KeyID?
        /// Why there is no signer; nil if there is one, or if the body has yet to come.
        package let unsignedReason: UnsignedReason?
        /// Set if the body has yet to come: the key that signed the head, and what the body must match.
        package let bodyCheck: BodyCheck?

        /// The refusal, if this is one; genuine if the authority is known to have said it.
        package internal(set) var notice: RefusalNotice?

        init(_ verified: VerifiedResponse) {
            switch verified {
            case .genuine(let answer):
                response = answer.response
                signer = answer.keyID
                unsignedReason = nil
                bodyCheck = nil
                notice = answer.notice
            case .verifiedHead(let begun, let check):
                response = begun
                signer = nil
                unsignedReason = nil
                bodyCheck = check
                notice = nil
            case .unsigned(let unsigned, let why):
                response = unsigned
                signer = nil
                unsignedReason = why
                bodyCheck = nil
                notice = unsigned.status >= 400 ? RefusalNotice(unsigned) : nil
            }
        }
    }

    /// A response whose head is signed is genuine once its body matches the head. Pass the body through a
    /// ``BodyDigest`` of `expectation`; do not trust the last bytes before the digest is finished.
    package struct BodyCheck: Sendable {
        package let signer: KeyID
        package let expectation: BodyExpectation
    }

    /// What the client does if no response comes.
    package enum LostAnswer: Sendable {
        /// It sends the request once more: the idempotency key lets the server recognize the copy.
        case askAgain
        /// It reports that the outcome is unknown. For a request whose second copy would be refused although
        /// the first was accepted.
        case stop
    }
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
