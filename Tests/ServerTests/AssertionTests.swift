import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Testing

@testable import CountersignServer

/// The key and the figures of RFC 8037, appendix A, and an assertion as a backend checks it.
@Suite struct AssertionTests {
    private func seed() throws -> Secret {
        let bytes = try #require(Base64.decode("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A", as: .url))
        return Secret(copying: bytes.span)
    }

    @Test("a key's id is its thumbprint (A.3)")
    func thumbprint() throws {
        let publicHalf = try #require(AnswerKey.publicHalf(of: seed()))
        #expect(Base64.encode(publicHalf.span, as: .url) == "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo")
        #expect(JWK(publicHalf: publicHalf).id == "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k")
    }

    @Test("what is signed is the two parts and the dot between them (A.4)")
    func signature() throws {
        let signer = try #require(Ed25519.Signer(seed: seed()))
        let parts = [#"{"alg":"EdDSA"}"#, "Example of Ed25519 signing"].map {
            Base64.encode(Array($0.utf8).span, as: .url)
        }
        let signature = signer.sign(Array(parts.joined(separator: ".").utf8).span)
        #expect(
            Base64.encode(signature.span, as: .url)
                == "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg")
    }

    @Test("an assertion lives for a minute, and its signature covers its header and its claims")
    func issued() async throws {
        let server = try TestServer()
        let now = server.clock.now
        var draft = Draft(method: "GET", target: Array("/a?x=1".utf8), authority: TestServer.authority)
        try MessageSignatures().sign(&draft, as: server.release, at: now, nonce: "n-assertion")
        let request = draft.request()
        let caller = try await server.gate.judge(request)
        let keys = try AssertionKeys(server.deployment)
        var (generator, lines) = (SplitMix64(seed: 1), [UInt8]())
        try AssertionIssuer(keys, issuer: "urn:us", audience: "urn:backend").append(
            for: request, caller: caller, from: "192.0.2.1", event: EventID(&generator), at: now, to: &lines)
        let line = try #require(
            String(decoding: lines, as: UTF8.self).wholeMatch(of: /Countersign-Assertion: (.*)\r\n/))
        let parts = line.1.split(separator: ".").map(String.init)
        try #require(parts.count == 3)
        let (header, claims, signature) = (
            try JSONReader.read(try #require(Base64.decode(parts[0], as: .url))),
            try JSONReader.read(try #require(Base64.decode(parts[1], as: .url))),
            try #require(Base64.decode(parts[2], as: .url))
        )
        let edition = try keys.latest()
        #expect(header.root["alg"]?.string == "EdDSA" && header.root["kid"]?.string == edition.current.id)
        func number(_ name: String) -> Int? {
            claims.root[name].flatMap { claims.integer($0, in: 0...Int.max) }
        }
        #expect(number("iat") == Int(now) && number("exp") == Int(now) + 60)
        #expect(claims.root["htm"]?.string == "GET" && claims.root["htu"]?.string == "/a?x=1")
        let signed = Array("\(parts[0]).\(parts[1])".utf8)
        let key = try PublicKey(ed25519: edition.signer.publicHalf)
        #expect(key.verify(signature.span, of: signed.span) == .equal)
    }
}
