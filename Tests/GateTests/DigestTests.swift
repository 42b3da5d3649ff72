import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Testing

/// Which digests of a body count. Source: RFC 9530 §2, §5.
@Suite struct DigestTests {
    private static let body = Array("hello".utf8)

    @Test(
        "every digest that is known is checked, and one must be known",
        arguments: [
            (["sha-256"], nil), (["sha-512"], nil), (["sha-256", "sha-512"], nil), (["md5", "sha-256"], nil),
            (["md5"], .badSignature), (["sha"], .badSignature), (["unixsum", "adler"], .badSignature),
            (["sha-256", "!sha-512"], .bodyMismatch), (["!sha-256", "sha-512"], .bodyMismatch),
            (["!sha-256"], .bodyMismatch), (["!sha-512", "md5"], .bodyMismatch),
        ] as [([String], Refusal.Code?)])
    func digests(_ row: (names: [String], code: Refusal.Code?)) async throws {
        let deployment = try Deployment()
        var draft = Draft(method: "POST", target: Array("/".utf8), authority: Deployment.authority)
        draft.setField("Content-Digest", to: row.names.map(Self.member).joined(separator: ", "))
        try MessageSignatures().sign(&draft, as: deployment.messages, at: Deployment.now, nonce: "n")
        // Signs without a body, so that the given field stays unchanged; then adds the body that it covers.
        let input = String(
            decoding: draft.fields.first { $0.name == "Signature-Input" }?.value ?? [], as: UTF8.self)
        #expect(input.contains("content-digest"))
        draft.body = Self.body
        #expect(await deployment.refusal(of: draft.request())?.code == row.code)
    }

    /// `!` before a name: with a digest of something else.
    private static func member(_ name: String) -> String {
        let isWrong = name.hasPrefix("!")
        let bytes = isWrong ? Array("other".utf8) : body
        switch name.drop(while: { $0 == "!" }) {
        case "sha-256": return "sha-256=:\(Base64.encode(SHA256.digest(bytes.span).span, as: .standard)):"
        case "sha-512": return "sha-512=:\(Base64.encode(SHA512.digest(bytes.span).span, as: .standard)):"
        case let other: return "\(other)=:AAAA:"
        }
    }
}
