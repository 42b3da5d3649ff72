import CountersignGate
import CountersignSchemes
import CountersignWire
import Testing

@Suite struct NextKeyTests {
    @Test(
        "both keys of a release verify, and the caller says which did",
        arguments: [SchemeName.messageSignatures, .formMD5])
    func both(_ scheme: SchemeName) async throws {
        let id = try #require(KeyID("formApp1"))
        let folder = try Folder()
        var policy = Policy()
        policy.schemes = [scheme]
        let (current, next, other) = (secret("current"), secret("next"), secret("other"))
        let release = AppRelease(
            id: id, app: "shop", platform: "ios", version: "1.0", scheme: scheme, policy: policy,
            key: SigningKey(current), nextKey: SigningKey(next))
        let gate = Gate(
            allowedHosts: AllowedHosts([Deployment.authority]), keys: KeyTable(keys: [id: release]),
            replay: try ReplayFile(path: folder.path + "/replay", expecting: nil, now: Deployment.now),
            clock: FixedTime(now: Deployment.now))
        func request(_ key: SigningKey, _ nonce: String) throws -> Request {
            var draft = Draft(method: "GET", target: Array("/".utf8), authority: Deployment.authority)
            let signer = Credentials(keyID: id, key: key, platform: "ios", version: "1.0")
            let writer = try #require(SchemeRegistry.standard.scheme(named: scheme))
            try writer.sign(&draft, as: signer, at: Deployment.now, nonce: nonce)
            return draft.request()
        }
        #expect(try await gate.judge(request(SigningKey(current), "nonce0001")).edition == .current)
        #expect(try await gate.judge(request(SigningKey(next), "nonce0002")).edition == .next)
        // One nonce is spent for the release, whichever of its keys signed.
        await #expect(throws: Refusal.self) { try await gate.judge(request(SigningKey(next), "nonce0001")) }
        let refusal = await #expect(throws: Refusal.self) {
            try await gate.judge(request(SigningKey(other), "nonce0003"))
        }
        #expect(refusal?.code == .badSignature)
    }
}
