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
        MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEqIVYZVLCrPZHGHjP17CTW0/+D9Lfw0EkjqF7xB4FivAxzic30tMM4GF+hR6Dxh71Z50VGGdldkkD
        XZCnTNnoXQ==
        """

    @Test("B.2.4 holds, with its status and no other", arguments: [(200, true), (201, false)])
    func publishedResponse(_ row: (status: Int, holds: Bool)) throws {
        let response = Response(
            status: row.status,
            fields: [
                Draft.Field("Date", "Tue, 20 Apr 2021 02:07:56 GMT"), Draft.Field("Content-Type", "application/json"),
                Draft.Field(
                    "Content-Digest",
                    "sha-512=:JlEy2bfUz7WrWIjc1qV6KVLpdr/7L5/L4h7Sxvh6sNHpDQWDCL+GauFQWcZBvVDhiyOnAQsxzZFYwi0wDH+1pw==:"
                ),
                Draft.Field("Content-Length", "23"), Draft.Field("Signature-Input", "sig-b24=\(Self.input)"),
                Draft.Field("Signature", "sig-b24=:\(Self.signature):"),
            ], body: Array("{\"message\": \"good dog\"}".utf8))
        var workspace = Workspace()
        try SignatureInput.read(response.message, &workspace, .labelled("sig-b24"))
        let request = Draft(method: "GET", target: Array("/".utf8), authority: "example.com").request()
        _ = try MessageSignatures().bindings(of: response, to: request, &workspace)
        try SignatureBase(message: response.message, request: request, status: row.status).spell(&workspace)
        let der = try #require(Base64.decode(Self.key.replacing("\n", with: ""), .standard))
        let key = try PublicKey(der: der.span)
        let signature = try #require(Base64.decode(Self.signature, .standard))
        let verdict = key.verify(signature.span, of: workspace.text.bytes.span)
        #expect((verdict == .equal) == row.holds)
    }

    @Test(
        "what is of requests needs req, and what is of this message has none",
        arguments: [
            #""@method""#, #""@path""#, #""@status";req"#, #""x";req;req"#, #""signature";req;tr"#, #""absent";req"#,
        ])
    func refuses(_ component: String) throws {
        var draft = Draft(method: "GET", target: Array("/".utf8), authority: "example.com")
        draft.set("Signature-Input", "a=();keyid=\"k\"")
        draft.set("Signature", "a=:AAAA:")
        let response = Response(
            status: 200,
            fields: [
                Draft.Field("Content-Digest", "sha-256=:\(String(repeating: "A", count: 43))=:"),
                Draft.Field(
                    "Signature-Input",
                    "a=(\"@status\" \"content-digest\" \"@method\";req \"@path\";req \"@query\";req \"signature\";req "
                        + "\"signature-input\";req \(component));"
                        + "keyid=\"k\";tag=\"countersign\""),
                Draft.Field("Signature", "a=:AAAA:"),
            ], body: [])
        #expect(throws: Refusal.self) {
            var workspace = Workspace()
            _ = try MessageSignatures().claim(in: response, to: draft.request(), &workspace)
        }
    }
}
