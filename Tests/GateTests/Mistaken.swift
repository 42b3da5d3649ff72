import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Testing

/// A request with a signer's mistake: the signed request differs from the sent one.
struct Mistaken {
    static let now: Int64 = 1_800_000_000
    static let secretText = "the secret of release 1"

    let scheme: SchemeName
    /// What is sent.
    var sent: Draft
    /// What the signer signs.
    var seen: Draft
    /// The string to sign, as the signer spells it; `<secret>` stands for the secret.
    var text: (String) -> String = { $0 }
    /// sigv4's canonical request, as the signer spells it.
    var canonical: ((String) -> String)?
    var secret = Array(Mistaken.secretText.utf8)
    var mac: ((_ text: [UInt8], _ secret: [UInt8]) -> [UInt8])?
    var encoded: (([UInt8]) -> String)?
    /// Changes to the signed request in transit.
    var later: (inout Draft) -> Void = { _ in }
    var at = Mistaken.now

    init(_ scheme: SchemeName) {
        self.scheme = scheme
        sent = Mistaken.draft(scheme)
        seen = sent
    }

    static func draft(_ scheme: SchemeName) -> Draft {
        var draft = Draft(
            method: "POST", target: Array("/a%20b/c%2Fd/?q=c+d%20e&b=1&a=%2f&flag".utf8),
            authority: "api.example.com:8443")
        switch scheme {
        case .formMD5: draft.body = Array("name=Jo%20Ann&city=K%C3%B6ln&empty=&zip=50667".utf8)
        case .authV1, .authV2:
            draft.target = Array("/a%20b/c/?name=Jo%20Ann&City=K%C3%B6ln&empty=&zip=50667".utf8)
            draft.body = Array("{\"a\":[1,2.50],\"b\":\"x/y\"}".utf8)
            draft.setField("Content-Type", to: "application/json")
        case .authV4:
            draft.body = Array(
                "{\"name\":\"Jo Ann\",\"City\":\"K\u{F6}ln\",\"list\":[1, 2],\"n\":1.50,\"none\":null}".utf8)
            draft.setField("Content-Type", to: "application/json")
        case .messageSignatures, .sigV4, .token:
            draft.body = Array("{\"b\":[1,2.50,\"x/y\"],\"a\":{\"name\":\"Zo\u{EB}\"}}".utf8)
            draft.setField("Content-Type", to: "application/json")
        }
        return draft
    }

    func request() throws -> Request {
        let spelled = try sign(seen)
        var draft = try sign(sent).draft
        // Digests and signature parameters are those of the signed request.
        for name in ["content-digest", "signature-input", "x-amz-content-sha256"] {
            guard let field = spelled.draft.fields.first(where: { $0.name.lowercased() == name }) else {
                continue
            }
            draft.setField(field.name, to: String(decoding: field.value, as: UTF8.self))
        }
        let plain = text(
            canonical.map { Mistaken.text(spelled.text, ending: $0(spelled.canonical)) } ?? spelled.text)
        let withSecret = plain.replacing("<secret>", with: String(decoding: secret, as: UTF8.self))
        let bytes = mac?(Array(withSecret.utf8), secret) ?? Mistaken.mac(scheme, withSecret, secret)
        let isBase64 = scheme == .messageSignatures
        let written =
            encoded?(bytes) ?? (isBase64 ? Base64.encode(bytes.span, as: .standard) : Hex.encode(bytes.span))
        Mistaken.replace(spelled.signature, with: written, in: &draft)
        Mistaken.replace(try sign(sent).signature, with: written, in: &draft)
        later(&draft)
        return draft.request()
    }

    private static func mac(_ scheme: SchemeName, _ text: String, _ secret: [UInt8]) -> [UInt8] {
        let bytes = Array(text.utf8)
        if scheme == .formMD5 { return DiagnosticHash.md5.digest(bytes.span) }
        guard scheme == .sigV4 else {
            return DiagnosticHash.sha256.hmac(key: secret.span, message: bytes.span)
        }
        let scope = text.split(separator: "\n").first { $0.contains("/aws4_request") } ?? ""
        let key = scope.split(separator: "/").reduce(Array("AWS4".utf8) + secret) { key, word in
            DiagnosticHash.sha256.hmac(key: key.span, message: Array(word.utf8).span)
        }
        return DiagnosticHash.sha256.hmac(key: key.span, message: bytes.span)
    }

    private static func text(_ text: String, ending canonical: String) -> String {
        let lines = text.split(separator: "\n").dropLast().map(String.init)
        return (lines + [Hex.encode(SHA256.digest(Array(canonical.utf8).span).span)]).joined(separator: "\n")
    }

    /// The signed draft, its string to sign, and its signature as it is written.
    private func sign(_ draft: Draft) throws -> (
        draft: Draft, text: String, canonical: String, signature: String
    ) {
        let scheme = try #require(SchemeRegistry.standard.scheme(named: self.scheme))
        let credentials = Credentials(
            keyID: try #require(KeyID("r_test")), key: SigningKey(Secret(copying: secret.span)),
            platform: "ios",
            version: "1.0")
        var signed = draft
        try scheme.sign(&signed, as: credentials, at: at, nonce: "nonce0000000001")
        var workspace = Workspace()
        let request = signed.request()
        let claim = try #require(try scheme.claim(in: request, workspace: &workspace))
        try scheme.writeStringToSign(for: claim, of: request, into: &workspace)
        let isBase64 = self.scheme == .messageSignatures
        let mac = claim.mac
        return (
            signed, workspace.text.displayText, workspace.canonicalRequest,
            isBase64 ? Base64.encode(mac.span, as: .standard) : Hex.encode(mac.span)
        )
    }

    private static func replace(_ old: String, with new: String, in draft: inout Draft) {
        let (old, new) = (Array(old.utf8), Array(new.utf8))
        draft.target = draft.target.replacing(old, with: new)
        draft.body = draft.body.replacing(old, with: new)
        for index in draft.fields.indices {
            draft.fields[index].value = draft.fields[index].value.replacing(old, with: new)
        }
    }
}

extension Draft {
    /// Changes the target.
    mutating func target(_ change: (String) -> String) {
        target = Array(change(String(decoding: target, as: UTF8.self)).utf8)
    }

    mutating func body(_ change: (String) -> String) {
        body = Array(change(String(decoding: body, as: UTF8.self)).utf8)
    }

    mutating func edit(_ name: String, _ change: (String) -> String) {
        for index in fields.indices where fields[index].name.lowercased() == name {
            fields[index].value = Array(change(String(decoding: fields[index].value, as: UTF8.self)).utf8)
        }
    }
}
