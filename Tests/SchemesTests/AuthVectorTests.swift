import CountersignSchemes
import CountersignSeal
import CountersignWire
import Testing

/// Figures of the field: read from a query and from a form body, spelled, and made again by signing.
@Suite struct AuthVectorTests {
    @Test("auth-v1", arguments: try Vectors.load("auth-v1/cases.json", as: SignedParameters.self))
    func first(_ call: SignedParameters) throws { try check(call, AuthV1()) }

    @Test("auth-v2", arguments: try Vectors.load("auth-v2/cases.json", as: SignedParameters.self))
    func second(_ call: SignedParameters) throws { try check(call, AuthV2()) }

    @Test("auth-v4", arguments: try Vectors.load("auth-v4/cases.json", as: SignedURL.self))
    func fourth(_ call: SignedURL) throws {
        var draft = call.draft
        try AuthV4().sign(&draft, as: call.credentials, at: call.timestamp, nonce: "")
        #expect(draft.fields.last == Draft.Field(name: "X-Auth-Signature", value: call.signature))
        try expect(call.signature, call.stringToSign, draft.request(), AuthV4(), call.secret)
    }

    private func check(_ call: SignedParameters, _ scheme: some Scheme) throws {
        // As it is sent: in the query, and in a form body where there is no other.
        var received = Draft(
            method: call.method, target: Array("\(call.path)?\(call.form)".utf8), authority: "h.example")
        received.body = Array(call.body.utf8)
        try expect(call.signature, call.stringToSign, received.request(), scheme, call.secret)
        if call.body.isEmpty {
            received.target = Array(call.path.utf8)
            received.setField("Content-Type", to: "application/x-www-form-urlencoded")
            received.body = Array(call.form.utf8)
            try expect(call.signature, call.stringToSign, received.request(), scheme, call.secret)
        }
        // As it is signed.
        var draft = call.unsigned
        try scheme.sign(&draft, as: call.credentials, at: call.timestamp, nonce: "")
        #expect(String(decoding: draft.target, as: UTF8.self).hasSuffix("&auth_signature=\(call.signature)"))
    }

    private func expect(
        _ signature: String, _ stringToSign: String, _ request: Request, _ scheme: some Scheme,
        _ secret: String
    ) throws {
        var workspace = Workspace()
        let claim = try #require(try scheme.claim(in: request, workspace: &workspace))
        #expect(claim.mac.array == Hex.decode(signature))
        try scheme.writeStringToSign(for: claim, of: request, into: &workspace)
        #expect(workspace.text.displayText == stringToSign)
        let key = SigningKey(Secret(copying: Array(secret.utf8).span))
        #expect(key.mac(claim.algorithm, of: workspace.text).array == Hex.decode(signature))
        for other in SchemeRegistry.standard.schemes where other.name != scheme.name {
            #expect(other.detect(in: request) == .absent, "\(other.name.rawValue) sees signs of its own")
        }
    }
}

/// A call of auth-v1 or auth-v2.
struct SignedParameters: Decodable, Sendable, CustomTestStringConvertible {
    var name: String
    var method: String
    var path: String
    var secret: String
    var body: String
    var parameters: [[String]]
    var signature: String
    var form: String
    var stringToSign: String

    var testDescription: String { name }
    var timestamp: Int64 { Int64(value("auth_timestamp")) ?? -1 }

    var credentials: Credentials {
        get throws {
            let id = value("auth_key").isEmpty ? value("auth_client_id") : value("auth_key")
            return Credentials(
                keyID: try #require(KeyID(id)), key: SigningKey(Secret(copying: Array(secret.utf8).span)))
        }
    }

    /// With the business parameters alone.
    var unsigned: Draft {
        var query: [UInt8] = []
        for pair in parameters where !pair[0].hasPrefix("auth_") && pair[0] != "body_md5" {
            Form.append(pair[0], value: Array(pair[1].utf8).span, to: &query)
        }
        let mark = query.isEmpty ? "" : "?"
        var draft = Draft(
            method: method, target: Array("\(path)\(mark)".utf8) + query, authority: "h.example")
        draft.body = Array(body.utf8)
        return draft
    }

    private func value(_ name: String) -> String { parameters.first { $0[0] == name }?[1] ?? "" }
}

/// A call of auth-v4.
struct SignedURL: Decodable, Sendable, CustomTestStringConvertible {
    var name: String
    var method: String
    var url: String
    var keyId: String
    var timestamp: Int64
    var secret: String
    var body: String
    var signature: String
    var stringToSign: String

    var testDescription: String { name }

    var credentials: Credentials {
        get throws {
            Credentials(
                keyID: try #require(KeyID(keyId)), key: SigningKey(Secret(copying: Array(secret.utf8).span)))
        }
    }

    var draft: Draft {
        let authority = "api.example.com"
        var draft = Draft(
            method: method, target: Array(url.dropFirst("https://\(authority)".count).utf8),
            authority: authority)
        draft.body = Array(body.utf8)
        return draft
    }
}
