import CountersignSchemes
import CountersignSeal
import CountersignWire
import Glibc

/// Requests under a session's token, signed with whatever key somebody has. Source: docs/protocol.md, "Sessions".
struct SessionForgery {
    /// The release that calls: it is in every copy of the app.
    let release: AppKey
    /// `bank.test:12345`
    let authority: String

    /// Moves money; nil where `keyID` cannot be one.
    func transfer(
        _ order: Order, under keyID: String, signedWith key: Secret, adding fields: [(String, String)] = []
    ) -> RawRequest? {
        let body = JSONValue.object([("to", .string(order.payee)), ("amount", .integer(Int64(order.amount)))])
        return post("/transfer", body, under: keyID, signedWith: key, adding: fields)
    }

    /// Any call with a JSON body.
    func post(
        _ path: String, _ body: JSONValue, under keyID: String, signedWith key: Secret,
        adding fields: [(String, String)] = []
    ) -> RawRequest? {
        guard let id = KeyID(keyID), let caller = KeyID(release.id) else { return nil }
        var credentials = Credentials(keyID: id, key: SigningKey(key))
        credentials.release = caller
        var draft = Draft(method: "POST", target: Array(path.utf8), authority: authority)
        draft.set("Content-Type", "application/json")
        for (name, value) in fields { draft.set(name, value) }
        draft.body = Array(body.text.utf8)
        let nonce = Nonce.make(for: .messageSignatures)
        guard (try? MessageSignatures().sign(&draft, as: credentials, at: Int64(time(nil)), nonce: nonce)) != nil else {
            return nil
        }
        var request = RawRequest("POST", path, body: draft.body)
        request.fields = RawFields([RawFields.Line("Host", authority)])
        for field in draft.fields {
            request.fields.lines.append(RawFields.Line(field.name, String(decoding: field.value, as: UTF8.self)))
        }
        return request
    }
}

extension Stage {
    /// What the attacker can sign in this row with keys that he comes by.
    var forgery: SessionForgery {
        SessionForgery(release: appKey, authority: "\(Setting.host):\(network.publicPort)")
    }
}

extension JSONValue {
    /// Bytes as our messages have them: base64url without padding.
    static func base64(_ bytes: [UInt8]) -> JSONValue { .string(Base64.encode(bytes.span, .url)) }
}
