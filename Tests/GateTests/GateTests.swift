import CountersignGate
import CountersignSchemes
import CountersignWire
import Testing

@Suite struct GateTests {
    @Test("a good request is let in, once", arguments: [SchemeName.messageSignatures, .formMD5])
    func once(_ scheme: SchemeName) async throws {
        let deployment = try Deployment()
        let request = try deployment.signed(scheme, nonce: "nonce0001")
        let caller = try await deployment.gate.judge(request)
        #expect(caller.scheme == scheme)
        #expect(caller.release.app == "shop")
        #expect(caller.created == Deployment.now)
        #expect(await deployment.refusal(of: request)?.code == .replayed)
    }

    @Test("how old and how new a signature may be", arguments: ages)
    func freshness(_ row: (scheme: SchemeName, age: Int64, code: Refusal.Code?)) async throws {
        let deployment = try Deployment()
        let request = try deployment.signed(row.scheme, at: Deployment.now - row.age, nonce: "nonce0001")
        #expect(await deployment.refusal(of: request)?.code == row.code)
    }

    @Test func timezoneOfTheApp() async throws {
        let deployment = try Deployment { $0.timezoneOffset = 8 * 3600 }
        var east = deployment.forms
        east.timezoneOffset = 8 * 3600
        var draft = Draft(method: "GET", target: Array("/".utf8), authority: Deployment.authority)
        let plain = draft
        try FormMD5().sign(&draft, as: east, at: Deployment.now, nonce: "nonce0001")
        #expect(await deployment.refusal(of: draft.request()) == nil)
        draft = plain
        try FormMD5().sign(&draft, as: deployment.forms, at: Deployment.now, nonce: "nonce0002")
        #expect(await deployment.refusal(of: draft.request())?.code == .stale)
    }

    @Test func expires() async throws {
        let deployment = try Deployment()
        for (expires, code) in [(Deployment.now, Refusal.Code.stale), (Deployment.now + 1, nil)]
            as [(Int64, Refusal.Code?)]
        {
            let request = try resigned(
                deployment, nonce: "n\(expires)", ";nonce=", with: ";expires=\(expires);nonce=")
            #expect(await deployment.refusal(of: request)?.code == code)
        }
    }

    @Test(
        "the least that must be covered",
        arguments: [
            "\"@method\" ", "\"@authority\" ", "\"@path\" ", "\"@query\" ", " \"countersign-release\"",
            " \"content-digest\"",
            " \"content-type\"", " \"idempotency-key\"", ";created=1800000000", ";nonce=\"n\"",
        ])
    func cover(_ part: String) async throws {
        let deployment = try Deployment()
        let request = try resigned(deployment, nonce: "n", part, with: "")
        let refusal = await deployment.refusal(of: request)
        #expect(refusal?.code == .badSignature)
        #expect(refusal?.detail.contains("the signature") == true, "\(refusal?.detail ?? "")")
    }

    @Test func releaseFieldMustBeTheKey() async throws {
        let deployment = try Deployment()
        let request = try resigned(deployment, nonce: "n", "nothing", with: "", release: "r_other")
        #expect(await deployment.refusal(of: request)?.detail.contains("countersign-release") == true)
    }

    @Test func unknownKeysAndKeysOfOtherSchemesAreTheSame() async throws {
        let deployment = try Deployment()
        for id in ["r_nobody", "formApp1"] {
            var stranger = deployment.messages
            stranger.keyID = try #require(KeyID(id))
            var draft = Draft(method: "GET", target: Array("/".utf8), authority: Deployment.authority)
            try MessageSignatures().sign(&draft, as: stranger, at: Deployment.now, nonce: "n")
            #expect(await deployment.refusal(of: draft.request())?.code == .unknownKey)
        }
    }

    @Test func wrongSecret() async throws {
        let deployment = try Deployment()
        var other = deployment.messages
        other.key = SigningKey(secret("another"))
        var draft = Draft(method: "GET", target: Array("/".utf8), authority: Deployment.authority)
        try MessageSignatures().sign(&draft, as: other, at: Deployment.now, nonce: "n")
        #expect(await deployment.refusal(of: draft.request())?.code == .badSignature)
    }

    @Test func schemesAreThePolicys() async throws {
        let deployment = try Deployment { $0.schemes = [.messageSignatures] }
        let form = try deployment.signed(.formMD5, nonce: "nonce0001")
        #expect(await deployment.refusal(of: form)?.code == .schemeNotAllowed)
        let message = try deployment.signed(.messageSignatures, nonce: "nonce0001")
        #expect(await deployment.refusal(of: message) == nil)
    }

    @Test func twoSchemesAtOnceAreRefused() async throws {
        let deployment = try Deployment()
        var draft = Draft(method: "GET", target: Array("/".utf8), authority: Deployment.authority)
        try FormMD5().sign(&draft, as: deployment.forms, at: Deployment.now, nonce: "nonce0001")
        try MessageSignatures().sign(&draft, as: deployment.messages, at: Deployment.now, nonce: "nonce0001")
        #expect(await deployment.refusal(of: draft.request())?.code == .malformed)
    }

    @Test func unsigned() async throws {
        let deployment = try Deployment()
        let draft = Draft(method: "GET", target: Array("/".utf8), authority: Deployment.authority)
        #expect(await deployment.refusal(of: draft.request())?.code == .unsigned)
    }

    @Test(
        "hosts this deployment does not answer for",
        arguments: [
            ("api.example.com", nil), ("API.example.com", nil), ("api.example.com:443", nil),
            ("api.example.com:80", .malformed), ("api.example.com:8443", .malformed),
            ("api.example.com.", .malformed), ("evil.example.com", .malformed), ("", .malformed),
        ] as [(String, Refusal.Code?)])
    func authority(_ row: (host: String, code: Refusal.Code?)) async throws {
        let deployment = try Deployment()
        let request = try deployment.signed(.messageSignatures, nonce: "n") { $0.authority = row.host }
        #expect(await deployment.refusal(of: request)?.code == row.code)
    }

    @Test func retiredReleasesAreSentToTheUpdate() async throws {
        let deployment = try Deployment(
            retirement: .init(at: Deployment.now, updateURL: "https://example.com/update"))
        let refusal = await deployment.refusal(of: try deployment.signed(.messageSignatures, nonce: "n"))
        #expect(refusal?.code == .updateRequired)
        #expect(refusal?.link == "https://example.com/update")
        let later = try Deployment(
            retirement: .init(at: Deployment.now + 1, updateURL: "https://example.com/update"))
        #expect(await later.refusal(of: try later.signed(.messageSignatures, nonce: "n")) == nil)
    }

    @Test(
        "plat is compared without case, ver as it is",
        arguments: [
            ("ios", "1.0", nil), ("iOS", "1.0", nil), ("android", "1.0", .badSignature),
            ("ios", "1.1", .badSignature),
        ] as [(String, String, Refusal.Code?)])
    func platform(_ row: (platform: String, version: String, code: Refusal.Code?)) async throws {
        let deployment = try Deployment()
        var credentials = deployment.forms
        credentials.platform = row.platform
        credentials.version = row.version
        var draft = Draft(method: "GET", target: Array("/".utf8), authority: Deployment.authority)
        try FormMD5().sign(&draft, as: credentials, at: Deployment.now, nonce: "nonce0001")
        #expect(await deployment.refusal(of: draft.request())?.code == row.code)
    }

    @Test func bodyIsCheckedBeforeTheNonceIsBurnt() async throws {
        let deployment = try Deployment()
        let request = try deployment.signed(.messageSignatures, nonce: "n") { $0.body = Array("hello".utf8) }
        var other = request
        other.body = Array("hullo".utf8)
        #expect(await deployment.refusal(of: other)?.code == .bodyMismatch)
        #expect(await deployment.refusal(of: request) == nil)
    }

    @Test func streamedBodiesAreCheckedByTheirDigest() async throws {
        let deployment = try Deployment()
        var request = try deployment.signed(.messageSignatures, nonce: "n") { $0.body = Array("hello".utf8) }
        request.body = []
        request.isBodyWhole = false
        let caller = try await deployment.gate.judge(request)
        for (body, code) in [("hello", nil), ("hullo", .bodyMismatch), ("", .bodyMismatch)]
            as [(String, Refusal.Code?)]
        {
            var digest = BodyDigest(caller.body)
            for byte in body.utf8 { digest.update([byte].span) }
            do throws(Refusal) {
                try digest.finish()
                #expect(code == nil)
            } catch {
                #expect(error.code == code)
            }
        }
    }

    @Test func streamedBodiesNeedADigest() async throws {
        let deployment = try Deployment()
        var request = try deployment.signed(.messageSignatures, nonce: "n") {
            $0.setField("Content-Type", to: "text/plain")
        }
        request.isBodyWhole = false
        #expect(await deployment.refusal(of: request)?.code == .badSignature)
        var form = try deployment.signed(.formMD5, nonce: "nonce0001")
        form.isBodyWhole = false
        form.body = []
        #expect(await deployment.refusal(of: form)?.code == .tooLarge)
        #expect(await deployment.gate.judgement(of: form).dialect == .legacy)
    }

    @Test func bodyThatNothingSignsIsRefused() async throws {
        let deployment = try Deployment()
        var request = try deployment.signed(.messageSignatures, nonce: "n")
        request.body = [1]
        #expect(await deployment.refusal(of: request)?.code == .badSignature)
    }

    @Test func dialects() async throws {
        let deployment = try Deployment()
        #expect(
            await deployment.gate.judgement(of: try deployment.signed(.messageSignatures, nonce: "n")).dialect
                == .problem)
        #expect(
            await deployment.gate.judgement(of: try deployment.signed(.formMD5, nonce: "nonce0001")).dialect
                == .legacy)
        #expect(await deployment.gate.judgement(of: Request()).dialect == .problem)
    }

    /// Signs again after a change to the signature's own parameters, so that only the missing part can be the
    /// reason of a refusal.
    private func resigned(
        _ deployment: Deployment, nonce: String, _ part: String, with other: String,
        release: String = "r_messages"
    ) throws -> Request {
        var draft = Draft(method: "POST", target: Array("/a".utf8), authority: Deployment.authority)
        draft.body = Array("{}".utf8)
        draft.setField("Content-Type", to: "application/json")
        draft.setField("Idempotency-Key", to: "k")
        try MessageSignatures().sign(&draft, as: deployment.messages, at: Deployment.now, nonce: nonce)
        let input = draft.fields.first { $0.name == "Signature-Input" }.map {
            String(decoding: $0.value, as: UTF8.self)
        }
        draft.setField("Signature-Input", to: try #require(input).replacing(part, with: other))
        draft.setField("Countersign-Release", to: release)
        var workspace = Workspace()
        let claim = try #require(try MessageSignatures().claim(in: draft.request(), workspace: &workspace))
        try MessageSignatures().writeStringToSign(for: claim, of: draft.request(), into: &workspace)
        let mac = deployment.messages.key.mac(.hmacSHA256, of: workspace.text)
        draft.setField("Signature", to: "app=:\(Base64.encode(mac.span, as: .standard)):")
        return draft.request()
    }

    private static let ages: [(scheme: SchemeName, age: Int64, code: Refusal.Code?)] = [
        (.messageSignatures, 0, nil), (.messageSignatures, 60, nil), (.messageSignatures, -60, nil),
        (.messageSignatures, 61, .stale), (.messageSignatures, -61, .stale),
        (.messageSignatures, 1_700_000_000, .stale), (.formMD5, 300, nil), (.formMD5, -300, nil),
        (.formMD5, 301, .stale), (.formMD5, -301, .stale), (.authV1, 599, nil), (.authV1, -599, nil),
        (.authV1, 600, .stale), (.authV1, -600, .stale), (.authV2, 43_199, nil), (.authV2, -43_199, nil),
        (.authV2, 43_200, .stale), (.authV2, -43_200, .stale), (.authV4, 43_199, nil),
        (.authV4, 43_200, .stale), (.authV4, -43_200, .stale),
    ]
}
