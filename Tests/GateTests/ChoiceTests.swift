import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Testing

/// Requests with several signatures.
@Suite struct ChoiceTests {
    @Test(
        "the policy's label decides, else the tag, else there must be one",
        arguments: [
            Row(label: nil, labels: ["a"], tags: [nil], code: nil),
            Row(label: nil, labels: ["a", "b"], tags: [nil, nil], code: .malformed),
            Row(label: "a", labels: ["a", "b"], tags: [nil, nil], code: nil),
            Row(label: "b", labels: ["a", "b"], tags: [nil, nil], code: nil),
            Row(label: "c", labels: ["a", "b"], tags: [nil, nil], code: .unsigned),
            Row(label: "b", labels: ["a", "b"], tags: ["countersign", nil], code: nil),
            Row(label: "b", labels: ["a", "b"], tags: ["countersign", "proxy"], code: nil),
            Row(label: nil, labels: ["a", "b"], tags: ["proxy", nil], code: nil),
            Row(label: nil, labels: ["a", "b"], tags: ["countersign", nil], code: nil),
        ])
    func decides(_ row: Row) async throws {
        let deployment = try Deployment { $0.signatureLabel = row.label }
        let request = try sign(row, deployment, breaking: nil)
        #expect(await deployment.refusal(of: request)?.code == row.code)
    }

    @Test("the other signature is not looked at", arguments: ["a", "b"])
    func onlyThatOne(_ label: String) async throws {
        let row = Row(label: label, labels: ["a", "b"], tags: [nil, nil], code: nil)
        let deployment = try Deployment { $0.signatureLabel = label }
        let other = label == "a" ? "b" : "a"
        #expect(await deployment.refusal(of: try sign(row, deployment, breaking: other)) == nil)
        let broken = try sign(row, deployment, breaking: label)
        #expect(await deployment.refusal(of: broken)?.code == .badSignature)
    }

    @Test("a signature that names another release does not choose by that one's policy")
    func borrowedPolicy() async throws {
        let deployment = try Deployment()
        let row = Row(label: "b", labels: ["a", "b"], tags: [nil, nil], code: nil)
        var draft = Draft(try sign(row, deployment, breaking: "b"))
        for name in ["Signature-Input", "Signature"] {
            let value = try #require(draft.fields.first { $0.name.lowercased() == name.lowercased() }?.value)
            let added = name == "Signature" ? "c=:AAAA:" : "c=();keyid=\"r_other\";tag=\"countersign\""
            draft.setField(name, to: "\(String(decoding: value, as: UTF8.self)), \(added)")
        }
        var keys: [KeyID: AppRelease] = [:]
        for (id, label) in [(deployment.messages.keyID, "b"), (try #require(KeyID("r_other")), "a")] {
            var policy = Policy()
            policy.signatureLabel = label
            keys[id] = AppRelease(
                id: id, app: "shop", platform: "ios", version: "1.0", scheme: .messageSignatures,
                policy: policy,
                key: deployment.messages.key)
        }
        let gate = Gate(
            allowedHosts: AllowedHosts([Deployment.authority]), keys: KeyTable(keys: keys),
            replay: deployment.replay,
            clock: FixedTime(now: Deployment.now))
        let request = draft.request()
        let refusal = await #expect(throws: Refusal.self) { try await gate.judge(request) }
        #expect(refusal?.code == .badSignature)
    }

    struct Row: Sendable {
        var label: String?
        var labels: [String]
        var tags: [String?]
        var code: Refusal.Code?
    }

    /// One request with a signature for each label, all under the same key; the MAC of one may be broken.
    private func sign(_ row: Row, _ deployment: Deployment, breaking broken: String?) throws -> Request {
        var inputs: [String] = []
        var signatures: [String] = []
        var draft = Draft(method: "GET", target: Array("/".utf8), authority: Deployment.authority)
        for (label, tag) in zip(row.labels, row.tags) {
            try MessageSignatures().sign(
                &draft, as: deployment.messages, at: Deployment.now, nonce: "n-\(label)")
            var input = String(
                decoding: draft.fields.first { $0.name == "Signature-Input" }?.value ?? [], as: UTF8.self)
            input.replace(";tag=\"countersign\"", with: tag.map { ";tag=\"\($0)\"" } ?? "")
            draft.setField("Signature-Input", to: input)
            let request = draft.request()
            var workspace = Workspace()
            let claim = try #require(
                try MessageSignatures().claim(in: request, labelled: "app", workspace: &workspace))
            try MessageSignatures().writeStringToSign(for: claim, of: request, into: &workspace)
            var mac = try deployment.messages.key.sign(workspace.text)
            if label == broken { mac[0] ^= 1 }
            inputs.append("\(label)=\(input.dropFirst(4))")
            signatures.append("\(label)=:\(Base64.encode(mac.span, as: .standard)):")
            draft.fields.removeAll { $0.name == "Signature-Input" || $0.name == "Signature" }
        }
        draft.setField("Signature-Input", to: inputs.joined(separator: ", "))
        draft.setField("Signature", to: signatures.joined(separator: ", "))
        return draft.request()
    }
}
