// Two releases with one secret: a signature that does not name its key is accepted once in total, by one
// entry.
import CountersignGate
import CountersignSchemes
import CountersignWire
import Testing

@Suite struct SharedSecretTests {
    private let deployment: Deployment
    private let gate: Gate
    private let first: Credentials
    private let second: Credentials

    init() throws {
        deployment = try Deployment()
        var policy = Policy()
        policy.schemes = [.sigV4]
        let key = SigningKey(secret("the secret of all versions"))
        var keys: [KeyID: AppRelease] = [:]
        for id in ["v1-of-the-app", "v2-of-the-app"] {
            let id = try #require(KeyID(id))
            keys[id] = AppRelease(
                id: id, app: "shop", platform: "ios", version: "1.0", scheme: .sigV4, policy: policy,
                key: SigningKey(secret("the secret of all versions")))
        }
        first = Credentials(keyID: try #require(KeyID("v1-of-the-app")), key: key)
        second = Credentials(keyID: try #require(KeyID("v2-of-the-app")), key: key)
        gate = Gate(
            allowedHosts: AllowedHosts([Deployment.authority]), keys: KeyTable(keys: keys),
            replay: deployment.replay,
            clock: FixedTime(now: Deployment.now))
    }

    private func signed(_ path: String, by credentials: Credentials) throws -> Draft {
        var draft = Draft(method: "POST", target: Array(path.utf8), authority: Deployment.authority)
        try SigV4().sign(&draft, as: credentials, at: Deployment.now, nonce: "")
        return draft
    }

    private func code(of draft: Draft) async -> Refusal.Code? {
        do {
            _ = try await gate.judge(draft.request())
            return nil
        } catch {
            return error.code
        }
    }

    @Test func oneSignatureUnderTwoKeyIDsIsAcceptedOnce() async throws {
        var draft = try signed("/pay", by: first)
        #expect(await code(of: draft) == nil)
        let field = try #require(draft.fields.first { $0.name == "Authorization" })
        let text = String(decoding: field.value, as: UTF8.self)
        draft.setField("Authorization", to: text.replacing("v1-of-the-app", with: "v2-of-the-app"))
        #expect(await code(of: draft) == .replayed)
        #expect(await code(of: try signed("/pay/other", by: second)) == nil)
    }
}
