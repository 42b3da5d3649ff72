import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Signs our own answers to callers of message-signatures: under the shared secret where the caller's MAC held, else with
/// the deployment's Ed25519 key. Source: docs/protocol.md, "Answers".
struct AnswerSigning: Sendable {
    private let authority: Credentials

    init(_ deployment: Deployment) throws(Fault) {
        let seed = try deployment.answerKey()
        guard let keyID = KeyID(MessageSignatures.authorityKeyID), let key = try? PrivateKey(ed25519Seed: seed) else {
            throw Fault(.failed, "answer key: not an Ed25519 seed")
        }
        authority = Credentials(keyID: keyID, key: SigningKey(key))
    }

    /// `answer` with a signature where the request bears one that it can be bound to; else as it is. `at` is in whole Unix
    /// seconds.
    func signed(_ answer: Answer, to request: Request, _ standing: Standing, at: Int64) -> Answer {
        // The content of an answer to HEAD is none, whatever it would have been.
        let body = request.matches(request.method, "HEAD") ? [] : answer.body
        let fields = try? MessageSignatures().sign(
            status: answer.status, body: body, answering: request, as: standing.shared ?? authority, at: at)
        guard let fields else { return answer }
        var answer = answer
        answer.fields += fields.map { Answer.Field($0.name, String(decoding: $0.value, as: UTF8.self)) }
        return answer
    }

    /// `refusal` with the wish for a signature that would do, where another one may help.
    static func asking(
        _ answer: Answer, for refusal: Refusal, of request: Request, _ standing: Standing, _ event: EventID
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
                    for: request, alsoCovering: standing.release?.policy.requiredFields.sorted() ?? [],
                    keyID: standing.keyID, nonce: event.text)))
        return answer
    }
}
