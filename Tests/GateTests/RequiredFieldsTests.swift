import CountersignGate
import CountersignSchemes
import CountersignWire
import Testing

/// Policy `cover`: fields that must be sent and signed, beyond those of the scheme itself.
@Suite struct RequiredFieldsTests {
    private func deployment() throws -> Deployment {
        try Deployment { $0.requiredFields = ["x-tenant", "x-plan"] }
    }

    private func fill(_ draft: inout Draft) {
        draft.setField("X-Tenant", to: "blue")
        draft.setField("X-Plan", to: "basic")
    }

    @Test func sentAndSigned() async throws {
        let deployment = try deployment()
        let request = try deployment.signed(.messageSignatures, nonce: "n1", fill)
        #expect(await deployment.refusal(of: request) == nil)
    }

    @Test func notSent() async throws {
        let deployment = try deployment()
        let request = try deployment.signed(.messageSignatures, nonce: "n1") {
            $0.setField("X-Plan", to: "basic")
        }
        let refusal = await deployment.refusal(of: request)
        #expect(refusal?.code == .badSignature)
        #expect(refusal?.detail == "\"x-tenant\" is not sent, and the policy asks for it")
    }

    @Test func sentAndNotSigned() async throws {
        let deployment = try deployment()
        var draft = Draft(method: "GET", target: Array("/".utf8), authority: Deployment.authority)
        draft.setField("X-Tenant", to: "blue")
        try MessageSignatures().sign(&draft, as: deployment.messages, at: Deployment.now, nonce: "n1")
        draft.setField("X-Plan", to: "basic")
        let refusal = await deployment.refusal(of: draft.request())
        #expect(refusal?.code == .badSignature)
        #expect(refusal?.detail == "the signature does not cover \"x-plan\", which the policy asks for")
    }

    @Test func aSchemeThatSignsNoFields() async throws {
        let deployment = try deployment()
        let refusal = await deployment.refusal(of: try deployment.signed(.formMD5, nonce: "nonce0001", fill))
        #expect(refusal?.code == .badSignature)
        #expect(refusal?.detail == "form-md5 signs no fields, and the policy asks for \"x-plan\"")
    }

    @Test("a bad signature is told as one, whatever else is missing")
    func afterTheSignature() async throws {
        let deployment = try deployment()
        var draft = Draft(method: "GET", target: Array("/".utf8), authority: Deployment.authority)
        try MessageSignatures().sign(&draft, as: deployment.messages, at: Deployment.now, nonce: "n1")
        draft.method = "POST"
        let refusal = await deployment.refusal(of: draft.request())
        #expect(refusal?.code == .badSignature && refusal?.detail.contains("policy") == false)
    }
}
