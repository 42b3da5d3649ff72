import CountersignWire

extension MessageSignatures {
    /// The value of `Accept-Signature` that asks for what the gate wants of `request`: the least, with what the app's
    /// policy adds, of the fields that are there or must be. `nonce` is new, for the signer to use once.
    /// Source: RFC 9421 §5.1.
    package static func request(
        for request: Request, alsoCovering fields: [String], keyID: KeyID?, nonce: String
    ) -> String {
        var names = ["@method", "@authority", "@path", "@query", "countersign-release"]
        if request.framing != .none { names.append("content-digest") }
        if request.names.contains(.contentType) { names.append("content-type") }
        if request.names.contains(.idempotencyKey) { names.append("idempotency-key") }
        for field in fields where !names.contains(field) { names.append(field) }
        let list = names.map { "\"\($0)\"" }.joined(separator: " ")
        var text = "app=(\(list));created;nonce=\"\(nonce)\""
        if let keyID { text += ";keyid=\"\(keyID.quotable)\"" }
        return text + ";tag=\"countersign\""
    }
}
