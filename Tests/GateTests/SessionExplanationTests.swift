import CountersignGate
import CountersignSchemes
import CountersignWire
import Testing

/// Explanations of a session's requests for an app with `debug`.
@Suite struct SessionExplanationTests {
    private func cause(_ request: Request, in scene: SessionScene) async -> Cause? {
        let judgement = await scene.gate.judgement(of: request)
        guard let refusal = judgement.refusal else { return nil }
        guard let release = scene.gate.releaseToExplain(for: request, judgement: judgement) else {
            return nil
        }
        return scene.gate.explanation(
            of: refusal, for: request, judgement: judgement, naming: release, within: .command)?.cause
    }

    private func scene() throws -> SessionScene { try SessionScene { $0.detail = .exact } }

    @Test("the release beside the token is another app's, or none")
    func differs() async throws {
        let scene = try scene()
        let foreign = try scene.request(from: "r_bank", nonce: "a")
        #expect(await cause(foreign, in: scene)?.code == "release-differs")
        let android = try scene.request(from: "r_android", nonce: "b")
        #expect(await cause(android, in: scene)?.code == "release-differs")
    }

    @Test("the release's own secret signed")
    func secretOfTheRelease() async throws {
        let scene = try scene()
        let request = try scene.request(key: scene.release)
        #expect(await cause(request, in: scene)?.code == "secret-of-the-release")
    }

    @Test("a forged request has no cause")
    func forged() async throws {
        let scene = try scene()
        let request = try scene.request(key: SigningKey(secret("nobody's")))
        #expect(await scene.refusal(of: request)?.code == .badSignature)
        #expect(await cause(request, in: scene) == nil)
    }
}
