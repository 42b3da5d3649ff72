import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Testing

/// Routes that require the device's signature in addition to the session's.
@Suite struct DeviceSignatureTests {
    private let device: PrivateKey
    private let scene: SessionScene

    init() throws {
        let device = try PrivateKey(random: .ecdsaP256)
        self.device = device
        let point = try #require(P256Point(subjectPublicKeyInfo: device.publicKey.der))
        scene = try SessionScene(device: point) { policy in
            policy.routes = RouteRules.rules(("/", .signed), ("/pay", .device), ("/v1/keys@home", .device))
        }
    }

    /// Signs as the device does, under the session's token unless told otherwise.
    private func cosign(
        _ draft: inout Draft, epoch: UInt32 = 3, with key: PrivateKey? = nil
    ) throws {
        let keyID = KeyID(try SessionScene.token(epoch))
        let key = key ?? device
        try MessageSignatures().addDeviceSignature(to: &draft, keyID: keyID, at: Deployment.now) { text in
            key.sign(text.span) ?? []
        }
    }

    @Test("a session's signature alone is not enough there, with the device's it is")
    func both() async throws {
        #expect(
            try await scene.refusal(of: scene.request(nonce: "1", target: "/pay"))?.code == .deviceUnsigned)
        let signed = try scene.request(nonce: "2", target: "/pay") { try cosign(&$0) }
        let caller = try await scene.gate.judge(signed)
        #expect(caller.session?.account.subject == "name:alice")
        #expect(await scene.refusal(of: signed)?.code == .replayed)
        #expect(try await scene.refusal(of: scene.request(nonce: "3", target: "/other")) == nil)
        let needless = try scene.request(nonce: "4", target: "/other") { try cosign(&$0) }
        #expect(await scene.refusal(of: needless) == nil, "nobody looks at it where no route asks")
    }

    @Test("a session without a device's key cannot sign there, whatever it adds")
    func bearer() async throws {
        let bearer = try SessionScene(
            kind: .bearer, device: P256Point(subjectPublicKeyInfo: device.publicKey.der)
        ) {
            $0.routes = RouteRules.rules(("/", .signed), ("/pay", .device))
        }
        for isSigned in [false, true] {
            let request = try bearer.request(nonce: "\(isSigned)", target: "/pay") { (draft: inout Draft) in
                if isSigned { try cosign(&draft) }
            }
            let refusal = await bearer.refusal(of: request)
            #expect(refusal?.code == .forbidden && refusal?.detail.contains("has no device key") == true)
        }
    }

    @Test("signatures that do not hold are verified so often from one network, and still from another")
    func failures() async throws {
        let other = try PrivateKey(random: .ecdsaP256)
        for number in 0..<PublicKeyFailureLimiter.burst {
            let forged = try scene.request(nonce: "f\(number)", target: "/pay") {
                try cosign(&$0, with: other)
            }
            #expect(await scene.refusal(of: forged, from: [192, 0, 2, 1])?.code == .badSignature)
        }
        let rows: [(network: [UInt8], code: Refusal.Code?)] = [
            ([192, 0, 2, 1], .tooManyAttempts), ([198, 51, 100, 1], nil),
        ]
        for (network, code) in rows {
            let genuine = try scene.request(nonce: "g\(network[0])", target: "/pay") { try cosign(&$0) }
            #expect(await scene.refusal(of: genuine, from: network)?.code == code)
        }
    }

    @Test("another device's signature, another epoch's token")
    func others() async throws {
        let other = try PrivateKey(random: .ecdsaP256)
        let forged = try scene.request(nonce: "1", target: "/pay") { try cosign(&$0, with: other) }
        #expect(await scene.refusal(of: forged)?.code == .badSignature)
        let elsewhere = try scene.request(nonce: "2", target: "/pay") { try cosign(&$0, epoch: 4) }
        #expect(await scene.refusal(of: elsewhere)?.code == .badSignature)
    }

    @Test("who has the session's key cannot move a device's signature to a request of his own")
    func moved() async throws {
        var input = "", signature = ""
        _ = try scene.request(nonce: "1", target: "/pay?to=alice") { draft in
            try cosign(&draft)
            (input, signature) = (
                try Self.member("device", of: "Signature-Input", draft),
                try Self.member("device", of: "Signature", draft)
            )
        }
        let moved = try scene.request(nonce: "2", target: "/pay?to=mallory") { draft in
            let own = (
                try Self.member("app", of: "Signature-Input", draft),
                try Self.member("app", of: "Signature", draft)
            )
            draft.setField("Signature-Input", to: "\(own.0), \(input)")
            draft.setField("Signature", to: "\(own.1), \(signature)")
        }
        let refusal = await scene.refusal(of: moved)
        #expect(refusal?.code == .badSignature && refusal?.detail == "the device's signature differs")
    }

    @Test("one that leaves the session's out would fit any request")
    func uncovering() async throws {
        let request = try scene.request(target: "/pay") { draft in
            let keyID = KeyID(try SessionScene.token())
            let input = try Self.member("app", of: "Signature-Input", draft)
            let first = try Self.member("app", of: "Signature", draft)
            let parameters = "(\"@method\");keyid=\"\(keyID)\";tag=\"countersign-device\""
            let text = Array("\"@method\": GET\n\"@signature-params\": \(parameters)".utf8)
            let signed = device.sign(text.span) ?? []
            draft.setField("Signature-Input", to: "\(input), device=\(parameters)")
            draft.setField("Signature", to: "\(first), device=:\(Base64.encode(signed.span, as: .standard)):")
        }
        let refusal = await scene.refusal(of: request)
        #expect(refusal?.code == .badSignature && refusal?.detail.contains("does not cover") == true)
    }

    @Test(
        "no spelling of a route slips by",
        arguments: [
            ("/pay", .deviceUnsigned), ("/pay/", .deviceUnsigned), ("/pay/42?x=1", .deviceUnsigned),
            ("/PAY", .deviceUnsigned), ("/pay;v=1", .malformed), ("/v1/keys@home", .deviceUnsigned),
            ("/v1;x/keys@home", .malformed), ("/V1;a=b/keys%40home;c", .malformed),
            ("/pay.json", .deviceUnsigned), ("/pay%20", .malformed), ("/pay.", .malformed),
            ("/pay%3Fx", .malformed), ("/v1/keys%40home/1", .deviceUnsigned),
            ("/V1/Keys%40Home", .deviceUnsigned), ("/p%61y", .malformed), ("//pay", .malformed),
            ("/x/../pay", .malformed), ("/x/..;/pay", .malformed), ("/pay%2f1", .malformed),
            ("/payment", nil), ("/v1/pay", nil), ("/", nil),
        ] as [(String, Refusal.Code?)])
    func spellings(_ row: (target: String, code: Refusal.Code?)) async throws {
        #expect(try await scene.refusal(of: scene.request(target: row.target))?.code == row.code)
    }

    @Test(
        "a release without a session is refused where a route needs one, and admitted to the authority's"
    )
    func withoutSession() async throws {
        #expect(try await scene.refusal(of: scene.releaseRequest("/pay"))?.code == .sessionRequired)
        #expect(try await scene.refusal(of: scene.request(target: "/pay"), for: .ownRoute) == nil)
    }

    /// One member of a dictionary field, with its name.
    private static func member(_ name: String, of field: String, _ draft: Draft) throws -> String {
        let value = try #require(draft.fields.first { $0.name == field }?.value)
        let members = String(decoding: value, as: UTF8.self).split(separator: ", ")
        return String(try #require(members.first { $0.hasPrefix("\(name)=") }))
    }
}
