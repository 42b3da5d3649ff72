import CountersignSchemes
import CountersignSeal
import CountersignWire

/// What came back, told apart by whether it may be acted upon.
enum Heard: Sendable {
    case genuine(GenuineAnswer)
    /// The head of a success is, and the body will be if it turns out to be the one that the head names.
    case begun(Response, SignedCalls.BodyCheck)
    /// It bears no signature of ours, or none that can be verified here: what passes through from a backend, or from whoever
    /// sits in between.
    case unsigned(Response, why: Doubt)
}

/// Why an answer counts as unsigned.
package enum Doubt: Sendable, Hashable {
    /// It bears no signature of ours.
    case noSignature
    /// It bears one under a key that is not known here; the text names the key.
    case unknownKey(String)
    /// It is a refusal with a body that is too long to be held and checked.
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

/// An answer that the authority gave to this very request. Only ``Listener`` makes one.
struct GenuineAnswer: Sendable {
    let response: Response
    /// Whose key it is signed with.
    let keyID: KeyID
    /// Milliseconds from the sending to the answer.
    let took: Int64

    fileprivate init(_ response: Response, _ keyID: KeyID, took: Int64) {
        self.response = response
        self.keyID = keyID
        self.took = took
    }

    /// What the answer to a request's first copy was. It is signed anew, and yet it is old, and the backend's: it says nothing of how
    /// things are now. Source: docs/protocol.md, "Doing once".
    private var isRepeated: Bool { response.message.value(of: "countersign-replayed") != nil }

    /// Nil for a success. Only a refusal that is genuine says what time it is, and only where it came in time.
    var notice: Notice? {
        guard response.status >= 400 else { return nil }
        var notice = Notice(response)
        guard !isRepeated else { return notice }
        notice.isGenuine = true
        notice.timeTold = notice.timeTold(took: took)
        return notice
    }
}

/// Sends a signed request and judges the answer.
struct Listener: Sendable {
    let surroundings: Surroundings
    /// Signs a session's requests once more; nil where the session's key alone does.
    var cosigner: (any DeviceSigner)?

    /// Signs `draft` and sends it once. `keys` says which keys may have signed the answer; a login's is known only from what it
    /// says. Throws ``ClientProblem/notGenuine(_:)`` where a signature is there and is wrong.
    nonisolated(nonsending) func ask(
        _ draft: Draft, as credentials: Credentials, at time: Int64,
        keys: (Response) -> [KeyID: SigningKey]
    ) async throws(ClientProblem) -> Heard {
        let draft = try signed(draft, as: credentials, at: time)
        let began = surroundings.time.milliseconds
        let response: Response
        do {
            response = try await surroundings.transport.send(draft)
        } catch {
            throw ClientProblem(error)
        }
        let took = surroundings.time.milliseconds - began
        return try Listener.judge(response, to: draft, keys(response), took: took)
    }

    func signed(_ draft: Draft, as credentials: Credentials, at time: Int64) throws(ClientProblem) -> Draft {
        var draft = draft
        let nonce = Base64.encode(surroundings.random.bytes(16).span, .url)
        do {
            try MessageSignatures().sign(&draft, as: credentials, at: time, nonce: nonce)
        } catch {
            throw .incomplete("the request cannot be signed: \(error.detail)")
        }
        if let cosigner { try cosigner.sign(&draft, keyID: credentials.keyID, at: time) }
        return draft
    }

    private static func judge(
        _ response: Response, to draft: Draft, _ keys: [KeyID: SigningKey], took: Int64
    ) throws(ClientProblem) -> Heard {
        // The content of an answer to HEAD is none, whatever a server in between added.
        do {
            guard response.message.isBodyWhole else { return try judgeHead(of: response, to: draft, keys) }
            switch try VerifyAnswer(keys)(response, to: draft.request()) {
            case .holds(let keyID): return .genuine(GenuineAnswer(response, keyID, took: took))
            case .unsigned: return .unsigned(response, why: .noSignature)
            }
        } catch {
            // A key that is not known here proves nothing, for or against.
            if error.code == .unknownKey { return .unsigned(response, why: .unknownKey(error.detail)) }
            throw .notGenuine(error.detail + Listener.hint(error.code, keys))
        }
    }

    /// A wrong authority key shows itself in no other way: its holder signs everything that the client cannot verify.
    private static func hint(_ code: Refusal.Code, _ keys: [KeyID: SigningKey]) -> String {
        let isKnown = KeyID(MessageSignatures.authorityKeyID).map { keys[$0] != nil } ?? false
        guard code == .badSignature, isKnown else { return "" }
        return "; if no answer of this server verifies, the authority key of the release key is another server's: "
            + "expected the `authority_key` that `countersign release add` printed"
    }

    /// Nothing follows from a refusal that is not seen whole.
    private static func judgeHead(
        of response: Response, to draft: Draft, _ keys: [KeyID: SigningKey]
    ) throws(Refusal) -> Heard {
        guard response.status < 400 else { return .unsigned(response, why: .tooLong) }
        switch try VerifyAnswer(keys).head(response, to: draft.request()) {
        case .holds(let keyID, let expectation):
            return .begun(response, SignedCalls.BodyCheck(signer: keyID, expectation: expectation))
        case .unsigned: return .unsigned(response, why: .noSignature)
        }
    }
}
