import CountersignGate
import CountersignSchemes
import CountersignWire
import Testing

/// The gate's checks of sigv4 beyond the signature: time, replay, policy.
@Suite struct SigV4GateTests {
    @Test("which requests may repeat", arguments: repeatsTable)
    func repeats(_ row: (rule: Policy.ReplayRule?, method: String, code: Refusal.Code?)) async throws {
        let deployment = try Deployment { $0.replays[.sigV4] = row.rule }
        let request = try deployment.signed(.sigV4, nonce: "") { $0.method = row.method }
        #expect(await deployment.refusal(of: request) == nil)
        #expect(await deployment.refusal(of: request)?.code == row.code)
    }

    @Test func anotherSpellingOfTheSameIsAReplay() async throws {
        let deployment = try Deployment()
        var draft = Draft(method: "POST", target: Array("/call?x=1&y=".utf8), authority: Deployment.authority)
        try SigV4().sign(&draft, as: deployment.amazon, at: Deployment.now, nonce: "")
        #expect(await deployment.refusal(of: draft.request()) == nil)
        let authorization = try #require(draft.fields.first { $0.name == "Authorization" })
        let text = String(decoding: authorization.value, as: UTF8.self).replacing(", ", with: " ,")
        draft.setField("Authorization", to: text)
        draft.target = Array("/call?y&%78=1".utf8)
        #expect(await deployment.refusal(of: draft.request())?.code == .replayed)
    }

    @Test("paths that share a signature with others", arguments: pathsTable)
    func ambiguousPaths(_ row: (path: String, service: String, code: Refusal.Code?)) async throws {
        let deployment = try Deployment()
        var signer = deployment.amazon
        signer.service = row.service
        var draft = Draft(method: "GET", target: Array(row.path.utf8), authority: Deployment.authority)
        try SigV4().sign(&draft, as: signer, at: Deployment.now, nonce: "")
        #expect(await deployment.refusal(of: draft.request())?.code == row.code)
    }

    private static let pathsTable: [(path: String, service: String, code: Refusal.Code?)] = [
        ("/", "execute-api", nil), ("/a/b/", "execute-api", nil), ("/.a/b..", "execute-api", nil),
        ("//", "execute-api", .malformed), ("//a", "execute-api", .malformed),
        ("/a//b", "execute-api", .malformed), ("/a//", "execute-api", .malformed),
        ("/./a", "execute-api", .malformed), ("/a/../b", "execute-api", .malformed),
        ("/a/.", "execute-api", .malformed), ("/a/..", "execute-api", .malformed), ("/a//../b", "s3", nil),
    ]

    @Test("how old and how new a signature may be", arguments: agesTable)
    func age(_ row: (age: Int64, code: Refusal.Code?)) async throws {
        let deployment = try Deployment()
        let request = try deployment.signed(.sigV4, at: Deployment.now - row.age, nonce: "")
        #expect(await deployment.refusal(of: request)?.code == row.code)
    }

    @Test("how long a presigned URL lives", arguments: livesTable)
    func presigned(_ row: (asks: Int64, policy: Int?, age: Int64, code: Refusal.Code?)) async throws {
        let deployment = try Deployment { $0.presignedLifetime = row.policy }
        let request = try presigned(deployment, "GET", lifetime: row.asks, age: row.age)
        #expect(await deployment.refusal(of: request)?.code == row.code)
    }

    @Test func presignedIsRememberedWhileItLives() async throws {
        let deployment = try Deployment { $0.presignedLifetime = 3600 }
        let request = try presigned(deployment, "POST", lifetime: 3600, age: 3000)
        // A replay guard whose window is shorter than this lifetime refuses as unavailable.
        #expect(await deployment.refusal(of: request)?.code == .unavailable)
        try deployment.replay.setWindow(300, lifetime: 3600, now: Deployment.now)
        #expect(await deployment.refusal(of: request) == nil)
        #expect(await deployment.refusal(of: request)?.code == .replayed)
    }

    @Test("bodies that are not signed", arguments: [Policy.Permission.refused, .allowed])
    func unsignedPayload(_ permission: Policy.Permission) async throws {
        let deployment = try Deployment { $0.unsignedPayload = permission }
        var draft = Draft(method: "PUT", target: Array("/call".utf8), authority: Deployment.authority)
        draft.body = Array("hello".utf8)
        draft.setField("X-Amz-Content-Sha256", to: "UNSIGNED-PAYLOAD")
        try SigV4().sign(&draft, as: deployment.amazon, at: Deployment.now, nonce: "")
        draft.body = Array("other".utf8)
        #expect(
            await deployment.refusal(of: draft.request())?.code
                == (permission == .allowed ? nil : .bodyMismatch))
    }

    @Test func bodyIsTheOneThatIsSigned() async throws {
        let deployment = try Deployment()
        for field in ["X-Amz-Content-Sha256", ""] {
            var draft = Draft(method: "POST", target: Array("/call".utf8), authority: Deployment.authority)
            if !field.isEmpty { draft.body = Array("hello".utf8) }
            try SigV4().sign(&draft, as: deployment.amazon, at: Deployment.now, nonce: "")
            draft.body = Array("jello".utf8)
            let code: Refusal.Code = field.isEmpty ? .badSignature : .bodyMismatch
            #expect(await deployment.refusal(of: draft.request())?.code == code)
        }
    }

    @Test func streamedBodyIsHeldToItsDigest() async throws {
        let deployment = try Deployment()
        var request = try deployment.signed(.sigV4, nonce: "") { $0.body = Array("hello".utf8) }
        request.isBodyWhole = false
        request.body = []
        let caller = try await deployment.gate.judge(request)
        for (body, isGood) in [("hello", true), ("hell", false)] {
            var digest = BodyDigest(caller.body)
            digest.update(Array(body.utf8).span)
            do {
                try digest.finish()
                #expect(isGood)
            } catch {
                #expect(!isGood && error.code == .bodyMismatch)
            }
        }
    }

    @Test(
        "a signature for one path does not open another",
        arguments: [
            ("/a%20b", "/a%2520b"), ("/a;b", "/a%3Bb"), ("/a%3Bb", "/a;b"), ("/a%2520b", "/a%20b"),
            ("/a:b", "/a%3Ab"), ("/A", "/%41"), ("/%41", "/A"), ("/a/b", "/a%2Fb"),
        ])
    func otherPath(_ row: (signed: String, sent: String)) async throws {
        let deployment = try Deployment()
        var draft = Draft(method: "GET", target: Array(row.signed.utf8), authority: Deployment.authority)
        try SigV4().sign(&draft, as: deployment.amazon, at: Deployment.now, nonce: "")
        #expect(await deployment.refusal(of: draft.request()) == nil)
        draft.target = Array(row.sent.utf8)
        #expect(await deployment.refusal(of: draft.request())?.code == .badSignature)
    }

    @Test func keysAreToldApart() async throws {
        let deployment = try Deployment()
        var stranger = deployment.amazon
        stranger.keyID = try #require(KeyID("AKIDNOBODY"))
        var draft = Draft(method: "GET", target: Array("/".utf8), authority: Deployment.authority)
        try SigV4().sign(&draft, as: stranger, at: Deployment.now, nonce: "")
        #expect(await deployment.refusal(of: draft.request())?.code == .unknownKey)
        stranger = deployment.amazon
        stranger.key = SigningKey(secret("another"))
        try SigV4().sign(&draft, as: stranger, at: Deployment.now, nonce: "")
        #expect(await deployment.refusal(of: draft.request())?.code == .badSignature)
        // A key for another scheme is not found.
        stranger = deployment.messages
        try SigV4().sign(&draft, as: stranger, at: Deployment.now, nonce: "")
        #expect(await deployment.refusal(of: draft.request())?.code == .unknownKey)
    }

    private func presigned(_ deployment: Deployment, _ method: String, lifetime: Int64, age: Int64) throws
        -> Request
    {
        var draft = Draft(method: method, target: Array("/call?x=1".utf8), authority: Deployment.authority)
        try SigV4().presign(&draft, as: deployment.amazon, at: Deployment.now - age, lifetime: lifetime)
        return draft.request()
    }

    private static let agesTable: [(age: Int64, code: Refusal.Code?)] = [
        (300, nil), (301, .stale), (-300, nil), (-301, .stale),
    ]

    private static let repeatsTable: [(rule: Policy.ReplayRule?, method: String, code: Refusal.Code?)] = [
        (nil, "GET", nil), (nil, "HEAD", nil), (nil, "POST", .replayed), (nil, "DELETE", .replayed),
        (.unsafeOnly, "GET", nil), (.unsafeOnly, "PUT", .replayed), (.strict, "GET", .replayed),
        (.strict, "POST", .replayed), (.off, "GET", nil), (.off, "POST", nil),
    ]

    private static let livesTable: [(asks: Int64, policy: Int?, age: Int64, code: Refusal.Code?)] = [
        (60, nil, 60, nil), (60, nil, 61, .stale), (3600, nil, 300, nil), (3600, nil, 301, .stale),
        (3600, 900, 900, nil), (3600, 900, 901, .stale), (60, 900, 61, .stale),
        (604_800, 86_400, 86_400, nil), (604_800, 86_400, 86_401, .stale), (60, nil, -300, nil),
        (60, nil, -301, .stale), (60, 30, 31, .stale),
    ]
}
