import CountersignSchemes
import CountersignSeal
import CountersignWire
import Testing

@Suite struct MessageSignaturesTests {
    @Test("published and foreign signatures hold, and are spelled alike", arguments: try messages())
    func knownAnswers(_ message: SignedMessage) throws {
        let request = message.draft.request()
        let scheme = MessageSignatures()
        var workspace = Workspace()
        #expect(scheme.detect(in: request) == .present)
        let claim = try #require(
            try scheme.claim(in: request, labelled: message.label, workspace: &workspace))
        #expect(claim.keyID == KeyID(message.keyId))
        #expect(claim.created == .unix(message.created))
        try scheme.writeStringToSign(for: claim, of: request, into: &workspace)
        #expect(workspace.text.displayText == message.stringToSign)
        #expect(try message.holds())
    }

    @Test("what http-message-signatures made has all that the gate asks for", arguments: try foreign())
    func cover(_ message: SignedMessage) throws {
        var workspace = Workspace()
        let claim = try #require(
            try MessageSignatures().claim(in: message.draft.request(), workspace: &workspace))
        #expect(claim.unmetRequirements.descriptions == [])
    }

    @Test("each lack has its name", arguments: lacksTable)
    func lack(_ row: (change: String, lack: UnmetRequirements)) throws {
        var draft = Draft(method: "POST", target: Array("/a?b=c".utf8), authority: "h.example")
        draft.body = Array("{}".utf8)
        draft.setField("Content-Type", to: "application/json")
        draft.setField("Idempotency-Key", to: "k")
        try MessageSignatures().sign(&draft, as: credentials(), at: 1000, nonce: "n")
        let input = try #require(draft.fields.first { $0.name == "Signature-Input" })
        let text = String(decoding: input.value, as: UTF8.self)
        #expect(text.contains(row.change), "the row changes nothing")
        var parts = text.components(without: row.change)
        parts = parts.replacing("( ", with: "(").replacing(" )", with: ")").replacing("  ", with: " ")
        draft.setField("Signature-Input", to: parts)
        var workspace = Workspace()
        let claim = try #require(try MessageSignatures().claim(in: draft.request(), workspace: &workspace))
        #expect(claim.unmetRequirements == row.lack)
    }

    @Test("a key id with quotes is read as it was written", arguments: ["a\"b", "a\\b", "\\", "\";tag=\"x"])
    func quotedKeyID(_ text: String) throws {
        let keyID = try #require(KeyID(text))
        var draft = Draft(method: "GET", target: Array("/".utf8), authority: "h.example")
        try MessageSignatures().sign(
            &draft, as: Credentials(keyID: keyID, key: credentials().key), at: 1000, nonce: "n")
        var workspace = Workspace()
        let claim = try #require(try MessageSignatures().claim(in: draft.request(), workspace: &workspace))
        #expect(claim.keyID == keyID)
        #expect(claim.unmetRequirements == [])
    }

    @Test("signing and reading back gives every field that was covered")
    func coveredFields() throws {
        var draft = Draft(method: "GET", target: Array("/".utf8), authority: "h.example")
        draft.setField("X-One", to: "1")
        draft.setField("User-Agent", to: "test")
        try MessageSignatures().sign(&draft, as: credentials(), at: 1000, nonce: "n")
        let request = draft.request()
        var workspace = Workspace()
        let claim = try #require(try MessageSignatures().claim(in: request, workspace: &workspace))
        let covered = request.fields.indices.filter { claim.coveredFields.contains($0) }
        #expect(covered.map { request.text(request.fields[$0].name) } == ["x-one", "countersign-release"])
    }

    @Test("several lines of a field are one value, and all are covered")
    func severalLines() throws {
        var draft = Draft(method: "GET", target: Array("/".utf8), authority: "h.example")
        draft.fields = [
            Draft.Field(name: "X-A", value: "1"), Draft.Field(name: "X-B", value: "x"),
            Draft.Field(name: "X-A", value: "2, 3"), Draft.Field(name: "x-a", value: ""),
        ]
        try MessageSignatures().sign(&draft, as: credentials(), at: 1000, nonce: "n")
        var workspace = Workspace()
        let request = draft.request()
        let claim = try #require(try MessageSignatures().claim(in: request, workspace: &workspace))
        try MessageSignatures().writeStringToSign(for: claim, of: request, into: &workspace)
        #expect(workspace.text.displayText.contains("\"x-a\": 1, 2, 3, \n"))
        #expect(claim.coveredFields == .only([1, 2, 3, 4, 5]))
    }

    @Test("of several signatures the one with our tag is taken")
    func labels() throws {
        var draft = Draft(method: "GET", target: Array("/".utf8), authority: "h.example")
        try MessageSignatures().sign(&draft, as: credentials(), at: 1000, nonce: "n")
        let ours = text(of: "Signature-Input", in: draft)
        let mac = text(of: "Signature", in: draft)
        draft.setField("Signature-Input", to: "proxy=(\"@status\";req);created=1;tag=\"other\", \(ours)")
        draft.setField("Signature", to: "proxy=:AAAA:, \(mac)")
        var workspace = Workspace()
        let claim = try #require(try MessageSignatures().claim(in: draft.request(), workspace: &workspace))
        #expect(claim.created == .unix(1000))
    }

    @Test("what is malformed is refused, with the place", arguments: malformedTable)
    func refuses(_ row: (input: String, signature: String, code: Refusal.Code)) {
        var draft = Draft(method: "GET", target: Array("/".utf8), authority: "h.example")
        draft.setField("Signature-Input", to: row.input)
        draft.setField("Signature", to: row.signature)
        let refusal = #expect(throws: Refusal.self) {
            var workspace = Workspace()
            let request = draft.request()
            guard let claim = try MessageSignatures().claim(in: request, workspace: &workspace) else {
                return
            }
            try MessageSignatures().writeStringToSign(for: claim, of: request, into: &workspace)
        }
        #expect(refusal?.code == row.code, "\(refusal?.detail ?? "")")
        #expect(refusal?.detail.isEmpty == false)
    }

    private static func messages() throws -> [SignedMessage] {
        try foreign() + Vectors.load("message-signatures/rfc9421.json", as: SignedMessage.self)
    }

    private static func foreign() throws -> [SignedMessage] {
        try Vectors.load("message-signatures/cases.json", as: SignedMessage.self)
    }

    private static let lacksTable: [(change: String, lack: UnmetRequirements)] = [
        ("\"@method\"", .method), ("\"@authority\"", .authority), ("\"@path\"", .path),
        ("\"@query\"", .query), ("\"countersign-release\"", .release), ("\"content-digest\"", .contentDigest),
        ("\"content-type\"", .contentType), ("\"idempotency-key\"", .idempotencyKey),
        (";created=1000", .created), (";nonce=\"n\"", .nonce),
    ]

    private static let malformedTable: [(input: String, signature: String, code: Refusal.Code)] = [
        ("", "", .unsigned),
        ("a=();keyid=\"k\";tag=\"other\"", "a=:AAAA:", .unsigned),
        ("a", "a=:AAAA:", .malformed),
        ("a=1", "a=:AAAA:", .malformed),
        ("a=(\"@method\"", "a=:AAAA:", .malformed),
        ("a=(\"@method\"\"@path\");keyid=\"k\"", "a=:AAAA:", .malformed),
        ("a=(@method);keyid=\"k\"", "a=:AAAA:", .malformed),
        ("a=(\"@method\" \"@method\");keyid=\"k\"", "a=:AAAA:", .malformed),
        ("a=(\"@method\");keyid=k", "a=:AAAA:", .malformed),
        ("a=(\"@method\");keyid=\"\"", "a=:AAAA:", .malformed),
        ("a=(\"@method\")", "a=:AAAA:", .malformed),
        ("a=(\"@method\");keyid=\"k\";created=\"1\"", "a=:AAAA:", .malformed),
        ("a=(\"@method\");keyid=\"k\";created=1.0", "a=:AAAA:", .malformed),
        ("a=(\"@method\");keyid=\"k\";created=1234567890123456", "a=:AAAA:", .malformed),
        ("a=(\"@method\");keyid=\"k\";created=1;created=2", "a=:AAAA:", .malformed),
        ("a=(\"@method\");keyid=\"k\";nonce=\"\"", "a=:AAAA:", .malformed),
        ("a=(\"@method\"  \"@path\");keyid=\"k\"", "a=:AAAA:", .malformed),
        ("a=( \"@method\");keyid=\"k\"", "a=:AAAA:", .malformed),
        ("a=(\"@method\" );keyid=\"k\"", "a=:AAAA:", .malformed),
        ("a=(\"@method\"); keyid=\"k\"", "a=:AAAA:", .malformed),
        ("a=(\"@method\");keyid=\"k\";created=01", "a=:AAAA:", .malformed),
        ("a=(\"@method\");keyid=\"k\";created=-0", "a=:AAAA:", .malformed),
        ("a=(\"@method\");keyid=\"k\";x=?1", "a=:AAAA:", .malformed),
        ("a=(\"@method\");keyid=\"k\";x=1.50", "a=:AAAA:", .malformed),
        ("a=(\"@method\");keyid=\"k\",", "a=:AAAA:", .malformed),
        (
            "a=(\"@method\");keyid=\"k\";tag=\"countersign\", b=();keyid=\"k\";tag=\"countersign\"",
            "a=:AAAA:",
            .malformed
        ),
        ("a=(\"@method\");keyid=\"k\"", "", .malformed),
        ("a=(\"@method\");keyid=\"k\"", "b=:AAAA:", .malformed),
        ("a=(\"@method\");keyid=\"k\"", "a=AAAA", .malformed),
        ("a=(\"@method\");keyid=\"k\"", "a=:AAA:", .malformed),
        ("a=(\"@method\");keyid=\"k\"", "a=:AAB=:", .malformed),
        ("a=(\"@method\");keyid=\"k\"", "a=:AAAA:, a=:AAAA:", .malformed),
        ("a=(\"@method\");keyid=\"k\"", "a=:\(String(repeating: "AAAA", count: 172)):", .malformed),
        ("a=(\"@method\");keyid=\"k\";alg=\"hs2019\"", "a=:AAAA:", .badSignature),
        ("a=(\"@status\");keyid=\"k\"", "a=:AAAA:", .badSignature),
        ("a=(\"@query-param\";name=\"x\");keyid=\"k\"", "a=:AAAA:", .badSignature),
        ("a=(\"host\";sf);keyid=\"k\"", "a=:AAAA:", .badSignature),
        ("a=(\"x-absent\");keyid=\"k\"", "a=:AAAA:", .badSignature),
        ("a=(\(String(repeating: "\"host\" ", count: 70)));keyid=\"k\"", "a=:AAAA:", .malformed),
        (
            (0..<9).map { "l\($0)=();keyid=\"k\";tag=\"other\"" }.joined(separator: ", "), "a=:AAAA:",
            .malformed
        ),
    ]
}

func credentials(_ id: String = "r_test") throws -> Credentials {
    let keyID = try #require(KeyID(id))
    return Credentials(keyID: keyID, key: SigningKey(Secret(copying: Array("a secret".utf8).span)))
}

func text(of name: String, in draft: Draft) -> String {
    String(decoding: draft.fields.first { $0.name == name }?.value ?? [], as: UTF8.self)
}

extension String {
    fileprivate func components(without part: String) -> String { replacing(part, with: "") }
}
