import CountersignLab
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Answers that a port must not believe.
enum Forgery {
    /// Credentials of the name `authority`, from an Ed25519 seed of 32 bytes.
    static func ed25519(_ seed: Secret) throws(OperationalError) -> Credentials {
        guard let keyID = KeyID(MessageSignatures.authorityKeyID),
            let key = try? PrivateKey(ed25519Seed: seed)
        else {
            throw OperationalError(.failed, message: "answer key: not an Ed25519 seed")
        }
        return Credentials(keyID: keyID, key: SigningKey(key))
    }

    /// The credentials of an authority that the client does not know.
    static func stranger() throws(ConformanceError) -> Credentials {
        do {
            return try ed25519(Secret(random: 32))
        } catch {
            throw .notStaged(error.message)
        }
    }

    /// A problem document.
    static func refusal(_ status: Int, code: String, members: [(String, JSONValue)] = []) -> RawResponse {
        let all: [(name: String, value: JSONValue)] = [
            (name: "type", value: "about:blank"), (name: "title", value: .string(code)),
            (name: "status", value: .integer(Int64(status))), (name: "code", value: .string(code)),
        ]
        return RawResponse(status, json: .object(all + members.map { (name: $0.0, value: $0.1) }))
    }

    /// `answer` with a signature by `signer`, bound to the request as the gateway's are.
    static func signed(_ answer: RawResponse, to request: RawRequest, by signer: Credentials, at time: Int64)
        -> RawResponse
    {
        adding(
            try? MessageSignatures().sign(
                status: answer.status, body: answer.body, answering: parsed(request), as: signer, at: time),
            to: answer)
    }

    /// `answer` with a signature by `signer` that covers its status and body alone.
    static func signedUnbound(_ answer: RawResponse, by signer: Credentials, at time: Int64) -> RawResponse {
        adding(
            try? MessageSignatures().sign(status: answer.status, body: answer.body, as: signer, at: time),
            to: answer)
    }

    /// `answer` without what signs it.
    static func unsigned(_ answer: RawResponse) -> RawResponse {
        var answer = answer
        for name in ["signature", "signature-input", "content-digest"] { answer.fields.remove(name) }
        return answer
    }

    /// `answer` with another JSON member, under the signature that it had.
    static func altered(_ answer: RawResponse, member name: String, to value: JSONValue) -> RawResponse {
        guard let document = try? JSONReader.read(answer.body), let members = document.root.members else {
            return answer
        }
        let changed = members.map { member -> (name: String, value: JSONValue) in
            if member.name == name { return (name: name, value: value) }
            if let text = member.value.string { return (name: member.name, value: .string(text)) }
            let number = document.integer(member.value, in: Int.min...Int.max) ?? 0
            return (name: member.name, value: .integer(Int64(number)))
        }
        var answer = answer
        answer.body = JSONValue.object(changed).bytes
        // So that the digest is right, and the signature over it is not.
        let digest = SHA256.digest(answer.body.span)
        let bytes = digest.indices.map { digest[$0] }
        answer.fields["content-digest"] = "sha-256=:\(Base64.encode(bytes.span, as: .standard)):"
        return answer
    }

    private static func adding(_ fields: [Draft.Field]?, to answer: RawResponse) -> RawResponse {
        var answer = answer
        for field in fields ?? [] { answer.fields[field.name] = String(decoding: field.value, as: UTF8.self) }
        return answer
    }

    private static func parsed(_ request: RawRequest) -> Request {
        var draft = Draft(
            method: request.method, target: Array(request.target.utf8),
            authority: request.fields["host"] ?? "")
        for line in request.fields.lines where line.name.lowercased() != "host" {
            draft.fields.append(Draft.Field(name: line.name, value: line.value))
        }
        draft.body = request.body
        return draft.request()
    }
}
