import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Requests under a session's token, signed with whatever key somebody has. Source: docs/protocol.md, "Sessions".
struct SessionForgery {
    /// The release that calls: it is in every copy of the app.
    let release: AppKey
    let destination: Destination

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
        var request = RawRequest("POST", path, body: Array(body.text.utf8))
        request.fields = RawFields([.init("Content-Type", "application/json")] + fields.map { .init($0.0, $0.1) })
        return request.signed(with: MessageSignatures(), credentials, at: destination)
    }
}

extension Stage {
    /// What the attacker can sign in this row with keys that he comes by.
    var forgery: SessionForgery {
        SessionForgery(
            release: appKey,
            destination: Destination(
                authority: network.authority, transport: row.transport == .plain ? .plain : .tls,
                platform: Setting.platform, version: Setting.version))
    }
}

extension JSONValue {
    /// Bytes as our messages have them: base64url without padding.
    static func base64(_ bytes: [UInt8]) -> JSONValue { .string(Base64.encode(bytes.span, .url)) }
}
