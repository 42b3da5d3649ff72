import CountersignWire

/// The values of the parameters in `auth_`, each read by its own rule.
struct AuthClaim {
    private var version: ByteRange?
    private var key: ByteRange?
    private var clientID: ByteRange?
    private var timestamp: ByteRange?
    private var signature: ByteRange?

    init(_ workspace: borrowing Workspace) {
        let text = workspace.decoded.span
        for parameter in workspace.parameters where parameter.isAboutSignature && !parameter.isArray {
            let name = text.extracting(parameter.name.range)
            switch name.count {
            case 8: if name.matches("auth_key") { key = parameter.value }
            case 12: if name.matches("auth_version") { version = parameter.value }
            case 14:
                if name.matches("auth_timestamp") { timestamp = parameter.value }
                if name.matches("auth_signature") { signature = parameter.value }
                if name.matches("auth_client_id") { clientID = parameter.value }
            default: break
            }
        }
    }

    /// The parameters in which a request may name its key.
    enum KeyNames {
        case key
        /// Either of the two, not both: with both, two parsers could choose different keys.
        case clientIDOrKey
    }

    func claim(
        for scheme: SchemeName, version expected: StaticString, keyNames names: KeyNames,
        workspace: inout Workspace
    ) throws(Refusal) -> Claim {
        let spare = workspace.spareClaim.take()
        let text = workspace.decoded.span
        guard let version, text.extracting(version.range).matches(expected) else {
            throw Refusal(.malformed, detail: "auth_version: expected 1.0 or 2, once")
        }
        guard let signature else {
            throw Refusal(.unsigned, detail: "parameters in auth_ without auth_signature")
        }
        guard let mac = Hex.decodeShort(text.extracting(signature.range)), mac.count == 32 else {
            throw Refusal(.badSignature, detail: "auth_signature: expected 64 lower-case hexadecimal digits")
        }
        if case .clientIDOrKey = names, key != nil, clientID != nil {
            throw Refusal(.malformed, detail: "auth_client_id and auth_key: expected one of them")
        }
        guard let named = names == .key ? key : clientID ?? key,
            let keyID = KeyID(text.extracting(named.range))
        else {
            throw Refusal(.unknownKey, detail: "auth_key: expected 1 to 64 visible characters")
        }
        guard let timestamp, let seconds = AuthClaim.seconds(text.extracting(timestamp.range)) else {
            throw Refusal(.malformed, detail: "auth_timestamp: expected whole Unix seconds")
        }
        let claim = Claim.make(scheme, keyID: keyID, algorithm: .hmacSHA256, mac: mac, reusing: spare)
        claim.created = .unix(seconds)
        return claim
    }

    /// Digits alone, and no more of them than a calendar needs.
    static func seconds(_ text: Span<UInt8>) -> Int64? {
        guard text.count > 0, text.count <= 15 else { return nil }
        var value: Int64 = 0
        for index in 0..<text.count {
            guard ASCII.isDigit(text[index]) else { return nil }
            value = value * 10 + Int64(text[index] - UInt8(ascii: "0"))
        }
        return value
    }
}
