import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Signs our own answers to callers of message-signatures: under a session's request key where its MAC held, else with the
/// deployment's Ed25519 key. Source: docs/protocol.md, "Signed answers".
struct AnswerSigning: Sendable {
    /// The deployment's own key, which everybody can verify and nobody else has.
    let authority: Credentials

    init(_ deployment: Deployment) throws(Fault) {
        let seed = try deployment.answerKey()
        guard let keyID = KeyID(MessageSignatures.authorityKeyID), let key = try? PrivateKey(ed25519Seed: seed) else {
            throw Fault(.failed, "answer key: not an Ed25519 seed")
        }
        authority = Credentials(keyID: keyID, key: SigningKey(key))
    }

    /// `answer` with a signature where the request bears one that it can be bound to; else as it is. `signer`
    /// nil stands for the deployment's own key; `at` is in whole Unix seconds.
    func signed(_ answer: Answer, to request: Request, by signer: Credentials?, at: Int64) -> Answer {
        let parts = Parts(answer, to: request)
        let signer = signer ?? authority
        return answer.adding(
            try? MessageSignatures().sign(
                status: answer.status, body: parts.body, alsoCovering: parts.fields, answering: request, as: signer,
                at: at))
    }

    /// `answer` as `signer` says it: bound to the request where that bears a signature, else by what it says itself, where
    /// `binding` is content with that.
    func signed(
        _ answer: Answer, to request: Request, by signer: Credentials, binding: MessageSignatures.Binding, at: Int64
    ) -> Answer {
        let bound = signed(answer, to: request, by: signer, at: at)
        guard binding == .content, bound.fields.count == answer.fields.count else { return bound }
        let parts = Parts(answer, to: request)
        return answer.adding(
            try? MessageSignatures().sign(
                status: answer.status, body: parts.body, alsoCovering: parts.fields, as: signer, at: at))
    }

    /// What of an answer is signed.
    private struct Parts {
        var body: [UInt8]
        /// What only we say.
        var fields: [Draft.Field]

        init(_ answer: Answer, to request: Request) {
            // The content of an answer to HEAD is none, whatever it would have been.
            body = request.matches(request.method, "HEAD") ? [] : answer.body
            fields = answer.fields.filter { $0.name.hasPrefix("Countersign-") }.map { Draft.Field($0.name, $0.value) }
        }
    }

    /// `refusal` with the wish for a signature that would do, where another one may help.
    static func asking(
        _ answer: Answer, for refusal: Refusal, of request: Request, _ judgement: Judgement, _ event: EventID
    ) -> Answer {
        switch refusal.code {
        case .unsigned, .unknownKey, .badSignature, .stale, .replayed: break
        default: return answer
        }
        var answer = answer
        answer.fields.append(
            Answer.Field(
                "Accept-Signature",
                MessageSignatures.request(
                    for: request, alsoCovering: judgement.release?.policy.requiredFields.sorted() ?? [],
                    keyID: judgement.keyID, nonce: event.text)))
        return answer
    }
}

extension Answer {
    fileprivate func adding(_ fields: [Draft.Field]?) -> Answer {
        var answer = self
        for field in fields ?? [] {
            answer.fields.append(Field(field.name, String(decoding: field.value, as: UTF8.self)))
        }
        return answer
    }
}
