import CountersignSeal
import CountersignWire
import Testing

@testable import CountersignSchemes

/// A response that others signed. Source: the figures of RFC 9421, appendix B.2.4.
@Suite struct ResponseTests {
    private static let input =
        #"("@status" "content-type" "content-digest" "content-length");"#
        + #"created=1618884473;keyid="test-key-ecc-p256""#
    private static let signature =
        "0Ry6HsvzS5VmA6HlfBYS/fYYeNs7fYuA7s0tAdxfUlPGv0CSVuwrrzBOjcCFHTxVRJ01wjvSzM2BetJauj8dsw=="
    private static let key = """
        MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEqIVYZVLCrPZHGHjP17CTW0/+D9Lfw0EkjqF7xB4FivAxzic30tMM4GF+hR6Dxh71\
        Z50VGGdldkkD
        XZCnTNnoXQ==
        """

    @Test("B.2.4 holds, with its status and no other", arguments: [(200, true), (201, false)])
    func publishedResponse(_ row: (status: Int, holds: Bool)) throws {
        let response = Response(
            status: row.status,
            fields: [
                Draft.Field(name: "Date", value: "Tue, 20 Apr 2021 02:07:56 GMT"),
                Draft.Field(name: "Content-Type", value: "application/json"),
                Draft.Field(
                    name: "Content-Digest",
                    value:
                        """
                        sha-512=:JlEy2bfUz7WrWIjc1qV6KVLpdr/7L5/L4h7Sxvh6sNHpDQWDCL+GauFQWcZBvVDhiyOnAQsxzZF\
                        Ywi0wDH+1pw==:
                        """
                ),
                Draft.Field(name: "Content-Length", value: "23"),
                Draft.Field(name: "Signature-Input", value: "sig-b24=\(Self.input)"),
                Draft.Field(name: "Signature", value: "sig-b24=:\(Self.signature):"),
            ], body: Array("{\"message\": \"good dog\"}".utf8))
        var workspace = Workspace()
        try SignatureInput.read(from: response.message, workspace: &workspace, rule: .labelled("sig-b24"))
        let request = Draft(method: "GET", target: Array("/".utf8), authority: "example.com").request()
        _ = try MessageSignatures().boundComponents(of: response, to: request, workspace: &workspace)
        try SignatureBase.write(
            of: response.message, request: request, status: row.status, into: &workspace)
        let der = try #require(Base64.decode(Self.key.replacing("\n", with: ""), as: .standard))
        let key = try PublicKey(der: der.span)
        let signature = try #require(Base64.decode(Self.signature, as: .standard))
        let verdict = key.verify(signature.span, of: workspace.text.bytes.span)
        #expect((verdict == .equal) == row.holds)
    }

    private func signedRequest(_ signature: String = "AAAA", path: String = "/a") -> Request {
        var draft = Draft(method: "GET", target: Array("\(path)?q=1".utf8), authority: "example.com")
        draft.setField("Signature-Input", to: "a=();keyid=\"k\"")
        draft.setField("Signature", to: "a=:\(signature):")
        return draft.request()
    }

    @Test("a response holds for the request that it was signed for, and for no other signature or target")
    func boundToItsRequest() throws {
        let id = try #require(KeyID("authority"))
        let key = SigningKey(Secret(random: 32))
        let body = Array("{}".utf8)
        let fields = try #require(
            try MessageSignatures().sign(
                status: 200, body: body, answering: signedRequest(), as: Credentials(keyID: id, key: key),
                at: 1_800_000_000))
        let response = Response(status: 200, fields: fields, body: body)
        let verifier = ResponseVerifier([id: key])
        #expect(try verifier(response, to: signedRequest()) == .holds(id))
        for other in [signedRequest("AAAB"), signedRequest(path: "/b")] {
            #expect { try verifier(response, to: other) } throws: { error in
                (error as? Refusal)?.code == .badSignature
            }
        }
    }

    @Test(
        "a response's signature that leaves out what binds it is refused, however good it is",
        arguments: [
            #""@status""#, #""content-digest""#, #""@method";req"#, #""@path";req"#, #""@query";req"#,
            #""signature";req"#, #""signature-input";req"#,
        ])
    func leavesOut(_ component: String) throws {
        let all = [
            #""@status""#, #""content-digest""#, #""@method";req"#, #""@path";req"#, #""@query";req"#,
            #""signature";req"#, #""signature-input";req"#,
        ]
        func claim(_ components: [String]) throws -> Claim? {
            let input = "a=(\(components.joined(separator: " ")));keyid=\"k\";tag=\"countersign\""
            let response = Response(
                status: 200,
                fields: [
                    Draft.Field(
                        name: "Content-Digest", value: "sha-256=:\(String(repeating: "A", count: 43))=:"),
                    Draft.Field(name: "Signature-Input", value: input),
                    Draft.Field(name: "Signature", value: "a=:AAAA:"),
                ], body: [])
            var workspace = Workspace()
            return try MessageSignatures().claim(in: response, to: signedRequest(), workspace: &workspace)
        }
        #expect(try claim(all) != nil)
        #expect { try claim(all.filter { $0 != component }) } throws: { error in
            guard let refusal = error as? Refusal else { return false }
            return refusal.code == .badSignature && refusal.detail.hasSuffix("does not cover \(component)")
        }
    }

    private static let leastComponents = [
        #""@status""#, #""content-digest""#, #""@method";req"#, #""@path";req"#, #""@query";req"#,
        #""signature";req"#, #""signature-input";req"#,
    ]

    private func claim(_ components: [String], digest: String) throws -> Claim? {
        let response = Response(
            status: 200,
            fields: [
                Draft.Field(name: "Content-Digest", value: digest),
                Draft.Field(
                    name: "Signature-Input",
                    value: "a=(\(components.joined(separator: " ")));keyid=\"k\";tag=\"countersign\""),
                Draft.Field(name: "Signature", value: "a=:AAAA:"),
            ], body: [])
        var workspace = Workspace()
        return try MessageSignatures().claim(in: response, to: signedRequest(), workspace: &workspace)
    }

    @Test("a component twice, and a digest of no algorithm that is known here, are refused")
    func refusedResponses() throws {
        let zeros = "sha-256=:\(String(repeating: "A", count: 43))=:"
        #expect(try claim(Self.leastComponents, digest: zeros) != nil)
        for component in Self.leastComponents {
            #expect { try claim(Self.leastComponents + [component], digest: zeros) } throws: { error in
                (error as? Refusal)?.code == .malformed
            }
        }
        #expect { try claim(Self.leastComponents, digest: "md5=:AAAAAAAAAAAAAAAAAAAAAA==:") } throws: {
            error in
            (error as? Refusal)?.code == .badSignature
        }
    }

    @Test("two digests of one algorithm are refused, in one field and in two")
    func twoDigests() throws {
        let (one, other) = (String(repeating: "A", count: 43), String(repeating: "B", count: 42) + "A")
        for values in [
            ["sha-256=:\(one)=:, sha-256=:\(other)=:"], ["sha-256=:\(one)=:", "sha-256=:\(other)=:"],
        ] {
            var draft = Draft(method: "POST", target: Array("/".utf8), authority: "example.com")
            for value in values { draft.fields.append(Draft.Field(name: "Content-Digest", value: value)) }
            #expect(throws: Refusal.self) { try ContentDigest.read(draft.request()) }
            draft.fields.removeAll()
            draft.setField("Content-Digest", to: "sha-256=:\(one)=:")
            #expect(try ContentDigest.read(draft.request()).sha256 != nil)
        }
    }

    @Test("a scheme with shared secrets does not take the signature of a key pair")
    func publicKeyOfASharedSecretScheme() throws {
        let pair = SigningKey(try PrivateKey(random: .ed25519))
        var workspace = Workspace()
        workspace.text = StringToSign(Array("text".utf8), secretAt: 0)
        let signature = try pair.sign(workspace.text)
        let sent = MAC(signature.span)
        let mac = try #require(sent)
        let id = try #require(KeyID("r_pair"))
        let own = Claim(scheme: .messageSignatures, keyID: id, algorithm: .ofKey, mac: mac)
        #expect(own.compare(with: pair, workspace: workspace) == .equal)
        let other = Claim(scheme: .authV1, keyID: id, algorithm: .hmacSHA256, mac: mac)
        #expect(other.compare(with: pair, workspace: workspace) == .different)
    }

    @Test(
        "what is of requests needs req, and what is of this message has none",
        arguments: [
            #""@method""#, #""@path""#, #""@status";req"#, #""x";req;req"#, #""signature";req;tr"#,
            #""absent";req"#,
        ])
    func refuses(_ component: String) throws {
        var draft = Draft(method: "GET", target: Array("/".utf8), authority: "example.com")
        draft.setField("Signature-Input", to: "a=();keyid=\"k\"")
        draft.setField("Signature", to: "a=:AAAA:")
        let response = Response(
            status: 200,
            fields: [
                Draft.Field(name: "Content-Digest", value: "sha-256=:\(String(repeating: "A", count: 43))=:"),
                Draft.Field(
                    name: "Signature-Input",
                    value:
                        "a=(\"@status\" \"content-digest\" \"@method\";req \"@path\";req \"@query\";req "
                        + "\"signature\";req "
                        + "\"signature-input\";req \(component));"
                        + "keyid=\"k\";tag=\"countersign\""),
                Draft.Field(name: "Signature", value: "a=:AAAA:"),
            ], body: [])
        #expect(throws: Refusal.self) {
            var workspace = Workspace()
            _ = try MessageSignatures().claim(in: response, to: draft.request(), workspace: &workspace)
        }
    }
}
