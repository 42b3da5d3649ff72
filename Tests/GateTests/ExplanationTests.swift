import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Testing

@Suite struct ExplanationTests {
    private static let now: Int64 = 1_800_000_000
    private let now = ExplanationTests.now

    @Test("what holds is accepted, stage by stage", arguments: [SchemeName.messageSignatures, .formMD5])
    func accepted(_ scheme: SchemeName) throws {
        let explanation = explain(try signed(scheme), scheme)
        #expect(explanation.verdict == .accepted)
        #expect(explanation.cause == nil)
        #expect(explanation.notes == [])
        #expect(
            explanation.stages.map(\.name).starts(with: ["claim", "string to sign", "SHA-256 of the string to sign"]))
    }

    @Test("the secret and the MAC it would make are never shown", arguments: [SchemeName.messageSignatures, .formMD5])
    func keepsSecrets(_ scheme: SchemeName) throws {
        var draft = try draft(scheme)
        try sign(&draft, scheme, secret: "the wrong secret")
        let expected = try signed(scheme)
        let shown = explain(draft.request(), scheme).stages.map(\.text).joined(separator: "\n")
        #expect(!shown.contains("the secret"))
        #expect(!shown.contains("the wrong secret"))
        if scheme == .formMD5 {
            let sign = try #require(String(decoding: expected.body, as: UTF8.self).split(separator: "=").last)
            #expect(sign.count == 32)
            #expect(!shown.contains(sign))
            #expect(shown.contains("private_key=<secret>"))
        } else {
            let mac = expected.text(try #require(expected.value(of: "signature")))
            #expect(!shown.contains(mac.dropFirst(5).dropLast()))
        }
    }

    @Test("each usual mistake is named", arguments: mistakes)
    func names(_ row: (cause: String, mistake: @Sendable (inout Draft) -> Void)) throws {
        // The signer sees the mistaken request; what is sent is the right one, with that signature.
        var seen = try draft(.messageSignatures)
        row.mistake(&seen)
        try sign(&seen, .messageSignatures)
        var sent = try draft(.messageSignatures)
        sent.fields = seen.fields
        let explanation = explain(sent.request(), .messageSignatures)
        #expect(explanation.cause == row.cause)
        #expect(code(explanation) == .badSignature)
    }

    @Test(
        "a secret read in another way is named",
        arguments: [
            ("dGhlIHNlY3JldA", "the secret was decoded from base64url, not used as text")
        ])
    func secretSpelling(_ row: (secret: String, cause: String)) throws {
        var draft = try draft(.messageSignatures)
        try sign(&draft, .messageSignatures, secret: "the secret")
        let explanation = explain(draft.request(), .messageSignatures, secret: row.secret)
        #expect(explanation.cause == row.cause)
        try sign(&draft, .messageSignatures, secret: row.secret)
        let other = explain(draft.request(), .messageSignatures, secret: "the secret")
        #expect(other.cause == "the secret was used as its base64url text, not decoded")
    }

    @Test("of a forgery no cause is named", arguments: [SchemeName.messageSignatures, .formMD5])
    func forged(_ scheme: SchemeName) throws {
        var draft = try draft(scheme)
        try sign(&draft, scheme, secret: "guessed")
        let explanation = explain(draft.request(), scheme)
        #expect(code(explanation) == .badSignature)
        #expect(explanation.cause == nil)
    }

    @Test(
        "clocks",
        arguments: [
            (-61, "the signer's clock is 61 s behind the time it is judged by, or the request is an old one"),
            (
                3600,
                "local time was sent for UTC, or the app's timezone is set wrongly: 3600 s ahead of the time it is judged by"
            ),
            (
                -20_700,
                "local time was sent for UTC, or the app's timezone is set wrongly: 20700 s behind the time it is judged by"
            ),
            (Int(now) * 999, "created is in milliseconds; expected whole seconds"),
        ])
    func clocks(_ row: (offset: Int, cause: String)) throws {
        var draft = try draft(.messageSignatures)
        try sign(&draft, .messageSignatures, at: now + Int64(row.offset))
        let explanation = explain(draft.request(), .messageSignatures)
        #expect(code(explanation) == .stale)
        #expect(explanation.cause == row.cause)
    }

    @Test("times far out of bounds end in an answer", arguments: [Int64.min, -1, 0, Int64.max])
    func anyTime(_ at: Int64) throws {
        let question = Explanation.Question(
            scheme: .messageSignatures, keyID: nil, secret: secret("the secret"), at: at)
        #expect(code(Explanation(of: try signed(.messageSignatures), question)) == .stale)
    }

    @Test func bodyThatWasChanged() throws {
        var request = try signed(.messageSignatures)
        request.body.append(0x0A)
        let explanation = explain(request, .messageSignatures)
        #expect(code(explanation) == .bodyMismatch)
        #expect(explanation.cause?.contains("the body is not the one that was signed") == true)
    }

    @Test func whatTheGateWouldAskForIsNoted() throws {
        var draft = Draft(method: "GET", target: Array("/".utf8), authority: "example.com")
        draft.set("Signature-Input", "s=(\"@method\");created=\(now);keyid=\"r_test\"")
        draft.set("Signature", "s=:AAAA:")
        let notes = explain(draft.request(), .messageSignatures).notes
        #expect(notes.contains("the signature does not cover \"@path\""))
        #expect(notes.contains("the signature has no \"nonce\" parameter"))
        #expect(!notes.contains("the signature does not cover \"@method\""))
    }

    @Test func unknownComponentIsNamed() throws {
        var draft = Draft(method: "GET", target: Array("/".utf8), authority: "example.com")
        draft.set("Signature-Input", "s=(\"@status\");created=\(now);keyid=\"r_test\"")
        draft.set("Signature", "s=:AAAA:")
        guard case .refused(let refusal) = explain(draft.request(), .messageSignatures).verdict else {
            Issue.record("accepted")
            return
        }
        #expect(refusal.detail.contains("\"@status\""))
    }

    @Test func anotherKeyID() throws {
        let question = Explanation.Question(
            scheme: .messageSignatures, keyID: KeyID("r_other"), secret: secret("the secret"), at: nil)
        #expect(code(Explanation(of: try signed(.messageSignatures), question)) == .unknownKey)
    }

    private static let mistakes: [(cause: String, mistake: @Sendable (inout Draft) -> Void)] = [
        ("the path was signed without its trailing slash", { $0.target = Array("/a%20b?q=c+d%20e".utf8) }),
        ("the decoded path was signed, not the one that was sent", { $0.target = Array("/a b/?q=c+d%20e".utf8) }),
        ("the query was signed with %20 where + was sent", { $0.target = Array("/a%20b/?q=c%20d%20e".utf8) }),
        ("the query was signed with + where %20 was sent", { $0.target = Array("/a%20b/?q=c+d+e".utf8) }),
        ("the method was signed in lower case", { $0.method = "post" }),
        ("the host was signed without its port", { $0.authority = "example.com" }),
    ]

    private func draft(_ scheme: SchemeName) throws -> Draft {
        var draft = Draft(method: "POST", target: Array("/a%20b/?q=c+d%20e".utf8), authority: "example.com:8443")
        draft.body = Array((scheme == .formMD5 ? "k=v" : "{}").utf8)
        if scheme != .formMD5 { draft.set("Content-Type", "application/json") }
        return draft
    }

    private func sign(
        _ draft: inout Draft, _ name: SchemeName, secret text: String = "the secret", at: Int64 = ExplanationTests.now
    ) throws {
        let credentials = Credentials(
            keyID: try #require(KeyID("r_test")), key: SigningKey(secret(text)), platform: "ios", version: "1")
        try #require(Registry.standard.scheme(named: name)).sign(&draft, as: credentials, at: at, nonce: "nonce0001")
    }

    private func signed(_ scheme: SchemeName) throws -> Request {
        var draft = try draft(scheme)
        try sign(&draft, scheme)
        return draft.request()
    }

    private func explain(_ request: Request, _ scheme: SchemeName, secret text: String = "the secret") -> Explanation {
        Explanation(
            of: request, Explanation.Question(scheme: scheme, keyID: KeyID("r_test"), secret: secret(text), at: now))
    }

    private func code(_ explanation: Explanation) -> Refusal.Code? {
        if case .refused(let refusal) = explanation.verdict { refusal.code } else { nil }
    }
}
