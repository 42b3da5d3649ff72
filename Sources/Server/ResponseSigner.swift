import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Signs the gateway's own answers to callers of message-signatures: under a session's request key if its MAC
/// was verified, else with the deployment's Ed25519 key. Source: docs/protocol.md, "Signed answers".
struct ResponseSigner: Sendable {
    private let answerKey: AnswerKeyCache

    init(_ deployment: Deployment) throws(OperationalError) { answerKey = try AnswerKeyCache(deployment) }

    /// The deployment's own key: every client can verify its signatures, and only the deployment can make
    /// them.
    var authority: Credentials { answerKey.current }

    /// `answer` with a signature if the request has one that the answer can be bound to; otherwise unchanged.
    /// `signer` nil stands for the deployment's own key; `at` is in whole Unix seconds.
    func signed(_ answer: ServerResponse, to request: Request, by signer: Credentials?, at: Int64)
        -> ServerResponse
    {
        let parts = Parts(answer, to: request)
        let signer = signer ?? authority
        return answer.adding(
            try? MessageSignatures().sign(
                status: answer.status, body: parts.body, alsoCovering: parts.fields, answering: request,
                as: signer,
                at: at))
    }

    /// `answer` signed by `signer`: bound to the request if the request has a signature; otherwise over the
    /// answer's own content, if `binding` allows that.
    func signed(
        _ answer: ServerResponse, to request: Request, by signer: Credentials,
        binding: MessageSignatures.Binding, at: Int64
    ) -> ServerResponse {
        let bound = signed(answer, to: request, by: signer, at: at)
        guard binding == .content, bound.fields.count == answer.fields.count else { return bound }
        let parts = Parts(answer, to: request)
        return answer.adding(
            try? MessageSignatures().sign(
                status: answer.status, body: parts.body, alsoCovering: parts.fields, as: signer, at: at))
    }

    /// The parts of an answer that the signature covers.
    private struct Parts {
        var body: [UInt8]
        /// The fields that only the gateway sets.
        var fields: [Draft.Field]

        init(_ answer: ServerResponse, to request: Request) {
            // The content of an answer to HEAD is empty.
            body = request.matches(request.method, text: "HEAD") ? [] : answer.body
            fields = answer.fields.filter { $0.name.hasPrefix("Countersign-") }.map {
                Draft.Field(name: $0.name, value: $0.value)
            }
        }
    }

    /// Adds the fields of a signature to `response` if the request has one that the response can be bound to.
    /// `covered` are those of its fields that the signature covers; `signer` nil stands for the deployment's
    /// own key.
    func sign(
        _ response: ResponseBytes, covering covered: [Draft.Field], answering request: Request,
        by signer: Credentials?, at: Int64, writing base: inout StringToSign
    ) {
        // The content of an answer to HEAD is empty.
        let isEmpty = request.matches(request.method, text: "HEAD")
        try? MessageSignatures().appendSignature(
            of: response.status, body: response.body, ofLength: isEmpty ? 0 : response.body.count,
            alsoCovering: covered, answering: request, as: signer ?? authority, at: at, writing: &base,
            to: &response.fields)
    }

    /// Appends an `Accept-Signature` field line that describes an acceptable signature, for refusals that
    /// another signature may avoid.
    static func appendSignatureRequest(
        to fields: inout ByteBuffer, for refusal: Refusal, of request: Request, judgement: Judgement,
        event: EventID
    ) {
        switch refusal.code {
        case .unsigned, .unknownKey, .badSignature, .stale, .replayed: break
        default: return
        }
        let nonce = event.bytes
        fields.append("Accept-Signature: ")
        MessageSignatures.appendAcceptSignature(
            for: request, alsoCovering: judgement.release?.policy.requiredFields.sorted() ?? [],
            keyID: judgement.keyID, nonce: nonce.span, to: &fields)
        fields.append("\r\n")
    }
}

extension ServerResponse {
    fileprivate func adding(_ fields: [Draft.Field]?) -> ServerResponse {
        var answer = self
        for field in fields ?? [] {
            answer.fields.append(Field(field.name, value: String(decoding: field.value, as: UTF8.self)))
        }
        return answer
    }
}

/// `Countersign-Update`, on each answer to a caller whose version is being retired. Source: docs/protocol.md,
/// "Retiring a version".
enum UpdateField {
    /// The field line for a backend's answer, with its CRLF; empty for most.
    static func line(for caller: Caller) -> [UInt8] { caller.update.map { line(for: $0) } ?? [] }

    static func line(for update: UpdateNotice) -> [UInt8] {
        Array("\(UpdateNotice.fieldName): \(update.fieldValue)\r\n".utf8)
    }
}

extension ServerResponse {
    func addingUpdateNotice(for caller: Caller?) -> ServerResponse {
        guard let update = caller?.update else { return self }
        var answer = self
        answer.fields.append(Field(UpdateNotice.fieldName, value: update.fieldValue))
        return answer
    }
}

extension Route {
    /// What a release in its read-only stage may still do here, besides reading: keep its session alive, and
    /// end it.
    var effect: ReleaseCheck.Effect {
        switch "\(path)" {
        case "/token", "/logout": .reads
        default: "\(method)" == "GET" ? .reads : .changes
        }
    }
}
