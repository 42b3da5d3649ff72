import CountersignSeal
import CountersignServer
import CountersignWire
import Testing

/// The key and the figures of RFC 8037, appendix A.
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
}
