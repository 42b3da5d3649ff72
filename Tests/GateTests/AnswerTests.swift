import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Testing

/// Answers that are signed and bound to their request.
@Suite struct AnswerTests {
    private let body = Array("{\"code\":\"stale\"}".utf8)

    @Test(
        "an answer holds for its request, under the key that signed it",
        arguments: [KeyAlgorithm.hmacSHA256, .ed25519])
    func holds(_ algorithm: KeyAlgorithm) throws {
        let request = try request(nonce: "one")
        let signer = try signer(algorithm)
        let response = try response(to: request, as: signer)
        #expect(
            try ResponseVerifier([signer.keyID: signer.key])(response, to: request) == .holds(signer.keyID))
    }

    @Test("it does not hold for another request, status, body or key")
    func bound() throws {
        let request = try request(nonce: "one")
        let signer = try signer(.ed25519)
        let verify = ResponseVerifier([signer.keyID: signer.key])
        let response = try response(to: request, as: signer)
        let other = try self.request(nonce: "two")
        #expect(throws: Refusal.self) { try verify(response, to: other) }
        var changed = response
        changed.status = 200
        #expect(throws: Refusal.self) { try verify(changed, to: request) }
        changed = response
        changed.message.body[2] ^= 1
        #expect(throws: Refusal.self) { try verify(changed, to: request) }
        let stranger = [signer.keyID: SigningKey(try PrivateKey(ed25519Seed: Secret(random: 32)))]
        #expect(throws: Refusal.self) { try ResponseVerifier(stranger)(response, to: request) }
        #expect(throws: Refusal.self) { try ResponseVerifier([:])(response, to: request) }
    }

    @Test(
        "a signature that leaves out what binds it is refused",
        arguments: [
            "\"@status\" ", "\"content-digest\" ", "\"@method\";req ", "\"@path\";req ", "\"@query\";req ",
            "\"signature\";req ", " \"signature-input\";req",
        ])
    func unbound(_ part: String) throws {
        let request = try request(nonce: "one")
        let signer = try signer(.ed25519)
        var fields = try #require(
            try MessageSignatures().sign(status: 401, body: body, answering: request, as: signer, at: 1000))
        let input = String(decoding: fields[1].value, as: UTF8.self)
        #expect(input.contains(part))
        fields[1] = Draft.Field(name: "Signature-Input", value: input.replacing(part, with: ""))
        let response = Response(status: 401, fields: fields, body: body)
        let refusal = #expect(throws: Refusal.self) {
            try ResponseVerifier([signer.keyID: signer.key])(response, to: request)
        }
        #expect(refusal?.detail.contains("does not cover") == true)
    }

    @Test(
        "an answer to the same signature on another request is not one to this",
        arguments: [("GET", "/pay?a=1"), ("POST", "/health?a=1"), ("POST", "/pay?a=2"), ("POST", "/pay")])
    func elsewhere(_ other: (method: String, target: String)) throws {
        var draft = Draft(method: "POST", target: Array("/pay?a=1".utf8), authority: "h.example")
        let release = Credentials(keyID: try #require(KeyID("r_1")), key: SigningKey(Secret(random: 32)))
        try MessageSignatures().sign(&draft, as: release, at: 1000, nonce: "one")
        var moved = Draft(method: other.method, target: Array(other.target.utf8), authority: "h.example")
        moved.fields = draft.fields
        let signer = try signer(.ed25519)
        func answer(to request: Request) throws -> Response {
            let fields = try MessageSignatures().sign(
                status: 200, body: body, answering: request, as: signer, at: 1000)
            return Response(status: 200, fields: try #require(fields), body: body)
        }
        let verify = ResponseVerifier([signer.keyID: signer.key])
        #expect(try verify(answer(to: draft.request()), to: draft.request()) == .holds(signer.keyID))
        #expect(throws: Refusal.self) { try verify(answer(to: moved.request()), to: draft.request()) }
    }

    @Test("no signature of ours is no verdict")
    func unsigned() throws {
        let request = try request(nonce: "one")
        let plain = Response(
            status: 200, fields: [Draft.Field(name: "Content-Type", value: "text/plain")], body: body)
        #expect(try ResponseVerifier([:])(plain, to: request) == .unsigned)
        let foreign = Response(
            status: 200,
            fields: [
                Draft.Field(name: "Signature-Input", value: "a=(\"@status\");keyid=\"x\";tag=\"other\""),
                Draft.Field(name: "Signature", value: "a=:AAAA:"),
            ], body: body)
        #expect(try ResponseVerifier([:])(foreign, to: request) == .unsigned)
    }

    @Test("without a signature on the request there is nothing to bind to")
    func nothingToBind() throws {
        let request = Draft(method: "GET", target: Array("/".utf8), authority: "h.example").request()
        let signer = try signer(.ed25519)
        #expect(
            try MessageSignatures().sign(status: 401, body: body, answering: request, as: signer, at: 1)
                == nil)
    }

    @Test("an answer that speaks for itself holds where nobody asks for more, and nowhere else")
    func unboundAnswer() throws {
        let request = try request(nonce: "one")
        let signer = try signer(.ed25519)
        let fields = try #require(try MessageSignatures().sign(status: 200, body: body, as: signer, at: 1000))
        let response = Response(status: 200, fields: fields, body: body)
        let verify = ResponseVerifier([signer.keyID: signer.key])
        #expect(try verify(response, bound: .content) == .holds(signer.keyID))
        #expect(throws: Refusal.self) { try verify(response, to: request) }
        let bound = try self.response(to: request, as: signer)
        #expect(throws: Refusal.self) { try verify(bound, bound: .content) }
        var changed = response
        changed.message.body[2] ^= 1
        #expect(throws: Refusal.self) { try verify(changed, bound: .content) }
    }

    @Test("a field that is covered cannot be changed or taken off")
    func coveredField() throws {
        let request = try request(nonce: "one")
        let signer = try signer(.ed25519)
        let update = Draft.Field(name: "Countersign-Update", value: "stage=warn")
        let signed = try #require(
            try MessageSignatures().sign(
                status: 200, body: body, alsoCovering: [update], answering: request, as: signer, at: 1000))
        let verify = ResponseVerifier([signer.keyID: signer.key])
        let whole = Response(status: 200, fields: [update] + signed, body: body)
        #expect(try verify(whole, to: request) == .holds(signer.keyID))
        for other in [[], [Draft.Field(name: "Countersign-Update", value: "stage=none")]] {
            #expect(throws: Refusal.self) {
                try verify(Response(status: 200, fields: other + signed, body: body), to: request)
            }
        }
    }

    @Test("no release's secret is ever shared with one caller: it is in every copy of the app")
    func standing() async throws {
        let deployment = try Deployment()
        let good = try deployment.signed(.messageSignatures, nonce: "n1")
        let judgement = await deployment.gate.judgement(of: good)
        #expect(judgement.responseCredentials == nil)
        #expect(judgement.release?.id == deployment.messages.keyID)
        var bad = good
        bad.head[good.path.range.lowerBound + 1] ^= 1
        #expect(await deployment.gate.judgement(of: bad).release?.app == "shop")
    }

    @Test("what Accept-Signature asks for is what the gate takes")
    func asked() throws {
        var draft = Draft(method: "POST", target: Array("/".utf8), authority: "h.example")
        draft.setField("Content-Type", to: "text/plain")
        draft.body = body
        let keyID = try #require(KeyID("a\"b\\c"))
        var buffer = ByteBuffer()
        MessageSignatures.appendAcceptSignature(
            for: draft.request(), alsoCovering: ["x-tenant", "content-type"], keyID: keyID,
            nonce: [UInt8(ascii: "n")].span, to: &buffer)
        let text = buffer.text
        #expect(
            text == #"app=("@method" "@authority" "@path" "@query" "countersign-release" "content-digest" "#
                + #""content-type" "x-tenant");created;nonce="n";keyid="a\"b\\c";tag="countersign""#)
        let bytes = Array(text.utf8)
        try StructuredField.checkDictionary(bytes.span)
    }

    private func request(nonce: String) throws -> Request {
        var draft = Draft(method: "GET", target: Array("/a".utf8), authority: "h.example")
        let keyID = try #require(KeyID("r_caller"))
        let credentials = Credentials(keyID: keyID, key: SigningKey(secret("a secret")))
        try MessageSignatures().sign(&draft, as: credentials, at: 1000, nonce: nonce)
        return draft.request()
    }

    private func signer(_ algorithm: KeyAlgorithm) throws -> Credentials {
        let keyID = try #require(KeyID("authority"))
        let key =
            algorithm == .hmacSHA256 ? SigningKey(secret("a secret")) : try TestKeys.privateKey(algorithm)
        return Credentials(keyID: keyID, key: key)
    }

    private func response(to request: Request, as signer: Credentials) throws -> Response {
        let fields = try MessageSignatures().sign(
            status: 401, body: body, answering: request, as: signer, at: 1000)
        return Response(status: 401, fields: try #require(fields), body: body)
    }
}
