import CountersignGate
import CountersignSchemes
import CountersignWire
import Testing

@testable import CountersignAuthority

/// The gate's decisions on tokens, and on the user that a request states beside its token.
@Suite struct BearerGateTests {
    @Test("userId and token are checked against each other, wherever the token is")
    func userIDs() async throws {
        let scene = try BearerScene(["legacy-session=authority", "slots=unlimited"])
        let grant = try await scene.open()
        let other = try await scene.open(BearerScene.addLegacy("other", userID: 7, to: scene.base))
        let (token, field) = (grant.token.text, ["Bearer \(grant.token.text)"])
        let good = ["token=\(token)", "token=\(token)&userId=42", "userId=42&token=\(token)&a=b"]
        for form in good { #expect(try await scene.judge(form) == .success("id:42"), "\(form)") }
        #expect(try await scene.judge("a=b", authorization: field) == .success("id:42"))
        #expect(try await scene.judge("token=\(token)", authorization: field) == .success("id:42"))
        #expect(try await scene.judge("userId=42", authorization: ["bearer \(token)"]) == .success("id:42"))
        #expect(try await scene.judge("a=b") == .success(nil), "as a release")
        #expect(try await scene.judge("token=&userId=") == .success(nil), "as before anybody signed in")

        for form in [
            "token=\(token)&userId=7", "token=\(token)&userId=042", "userId=42", "token=\(token)&userId=042 ",
        ] {
            #expect(try await scene.judge(form).code == .sessionEnded, "\(form)")
        }
        #expect(try await scene.judge("userId=7", authorization: field).code == .sessionEnded)
        let two = ["Bearer \(other.token.text)"]
        #expect(try await scene.judge("token=\(token)", authorization: two).code == .malformed)
        #expect(try await scene.judge("a=b", authorization: field + two).code == .malformed)
        for query in ["?userId=7", "?token=\(other.token.text)", "?%75serId=7"] {
            #expect(try await scene.judge("token=\(token)", query: query).code == .malformed, "\(query)")
        }
        #expect(try await scene.judge("token=\(token)", query: "?page=2") == .success("id:42"))
    }

    @Test("tokens that are none", arguments: ["abc", "b_", "l_AAAA", String(repeating: "x", count: 5_000)])
    func nobodys(_ token: String) async throws {
        let scene = try BearerScene(["legacy-session=authority"])
        #expect(try await scene.judge("token=\(token)").code == .sessionEnded)
        #expect(try await scene.judge("a=b", authorization: ["Bearer \(token)"]).code == .sessionEnded)
        #expect(try await scene.judge("a=b", authorization: ["Basic \(token)"]) == .success(nil))
    }

    @Test("by default the tokens of old clients are their backend's, and are not read")
    func upstream() async throws {
        let scene = try BearerScene()
        let grant = try await scene.open()
        for form in ["token=anything&userId=5", "token=\(grant.token.text)&userId=7", "userId=9"] {
            #expect(try await scene.judge(form, query: "?token=x") == .success(nil))
        }
        #expect(try await scene.judge("a=b", authorization: ["Bearer x"]) == .success(nil))
    }

    @Test(
        "a token that ran out is the end to a release that renews none, which is the default",
        arguments: ["legacy-renewal=off", "legacy-renewal="])
    func renewalPolicy(_ setting: String) async throws {
        let scene = try BearerScene(["legacy-session=authority", setting])
        let grant = try await scene.open()
        scene.base.clock.now += 7_200
        #expect(try await scene.code(bearing: grant.token) == .sessionEnded)
        #expect(try scene.base.row(grant.session).end == nil, "it lives: its login token is still good")
        _ = try await scene.renew(grant.loginToken, .keeping)
    }

    @Test("where the policy has routes that need a session, no token is -100")
    func requiredSession() async throws {
        let scene = try BearerScene(["legacy-session=authority"], requiring: .session)
        let grant = try await scene.open()
        #expect(try await scene.judge("a=b").code == .sessionRequired)
        #expect(try await scene.judge("token=\(grant.token.text)") == .success("id:42"))
    }

    @Test("where old clients sign in, the token that they still have is not asked")
    func atTheDoor() async throws {
        let scene = try BearerScene(["legacy-session=authority"], requiring: .session)
        #expect(try await scene.judge("token=gone&userId=3&username=x", for: .login) == .success(nil))
    }

    @Test(
        "a token of another app's session opens nothing, in a form and in a field",
        arguments: [SchemeName.formMD5, .messageSignatures])
    func otherApp(_ scheme: SchemeName) async throws {
        let scene = try BearerScene(["legacy-session=authority"])
        let grant = try await scene.open()
        let deployment = scene.base.deployment
        let other = try #require(AppName("other"))
        let settings = ["schemes=message-signatures,form-md5", "legacy-session=authority"]
        _ = try deployment.addApp(other, settings: settings, requiring: .signed, at: 5)
        var release = try draft(other, id: "r_foreign", version: "0.9", scheme: scheme)
        release.platform = try #require(Platform("android"))
        _ = try deployment.addRelease(release, at: 6)
        // The token is good where it belongs.
        #expect(try await scene.code(bearing: grant.token) == nil)
        let key = try scene.base.release("r_foreign")
        let signer = Credentials(keyID: key.id, key: key.key, platform: "android", version: "0.9")
        var request = Draft(method: "POST", target: Array("/api".utf8), authority: SessionScene.authority)
        let nonce = "n\(UInt64.random(in: 0...UInt64.max))0000000"
        if scheme == .formMD5 {
            request.body = Array("token=\(grant.token.text)".utf8)
            request.fields = [.init(name: "content-type", value: "application/x-www-form-urlencoded")]
            try FormMD5().sign(&request, as: signer, at: scene.base.now, nonce: nonce)
        } else {
            request.fields = [.init(name: "authorization", value: "Bearer \(grant.token.text)")]
            try MessageSignatures().sign(&request, as: signer, at: scene.base.now, nonce: nonce)
        }
        #expect(await scene.judge(request.request()).code == .sessionEnded)
    }

    @Test("under message-signatures a token of ours must be covered, and others' are theirs")
    func covered() async throws {
        let scene = try BearerScene()
        let grant = try await scene.open()
        let key = try scene.base.release("r_android")
        func request(_ token: String, _ nonce: String, covering: Bool = true) throws -> Request {
            var draft = Draft(method: "GET", target: Array("/call".utf8), authority: SessionScene.authority)
            let field = Draft.Field(name: "authorization", value: "Bearer \(token)")
            if covering { draft.fields.append(field) }
            try MessageSignatures().sign(
                &draft, as: Credentials(keyID: key.id, key: key.key), at: scene.base.now, nonce: nonce)
            if !covering { draft.fields.append(field) }
            return draft.request()
        }
        #expect(try await scene.judge(request(grant.token.text, "1")) == .success("id:42"))
        #expect(try await scene.judge(request(grant.token.text, "2", covering: false)).code == .badSignature)
        #expect(try await scene.judge(request("the-backends-own", "3")) == .success(nil))
        #expect(try await scene.judge(request("the-backends-own", "4", covering: false)) == .success(nil))
        scene.base.clock.now += 7_200
        #expect(try await scene.judge(request(grant.token.text, "5")).code == .tokenExpired)
    }

    @Test("a token of ours in a place where none is read is refused, and so goes nowhere")
    func stray() async throws {
        let scene = try BearerScene()
        let grant = try await scene.open()
        let key = try scene.base.release("r_android")
        let release = Credentials(keyID: key.id, key: key.key)
        let device = try await scene.base.signIn(scene.base.addAccount("alice"), from: "r_ios")
        let own = Credentials(device.token, key: device.key, release: device.release.id)
        func code(_ value: String, as signer: Credentials) async throws -> Refusal.Code? {
            var draft = Draft(method: "GET", target: Array("/call".utf8), authority: SessionScene.authority)
            draft.setField("Authorization", to: value)
            try MessageSignatures().sign(
                &draft, as: signer, at: scene.base.now, nonce: "\(UInt64.random(in: 0...UInt64.max))")
            return await scene.judge(draft.request()).code
        }
        let (token, loginToken) = (grant.token.text, grant.loginToken.text)
        for value in ["Bearer \(token)", "Bearer  \(token)", "bearer \(token)", "BEARER   \(token)"] {
            #expect(
                try await code(value, as: release) == nil,
                "\(value) is read, and the session's field is taken off")
        }
        for value in [
            "Bearer\t\(token)", "Basic \(token)", "Bearer x, Bearer \(token)", "Bearer token=\(token)",
            "Bearer \(loginToken)", "Token \(loginToken)", token,
        ] {
            #expect(try await code(value, as: release) == .malformed, "\(value)")
        }
        for value in ["Bearer \(token)", "Bearer  \(token)", "bearer \(loginToken)", "Basic \(token)"] {
            #expect(try await code(value, as: own) == .malformed, "beside a device's session: \(value)")
        }
        #expect(try await code("Bearer the-backends-own", as: own) == nil)
        #expect(
            try await scene.judge("a=b", authorization: ["Bearer \(token)"]).code == .malformed,
            "where the tokens of old clients are their backend's")
    }

    @Test("every token that is known ends its session: run out, offered and never used, or renewed since")
    func logOut() async throws {
        let scene = try BearerScene(["legacy-session=authority"])
        let first = try await scene.open()
        let key = try scene.base.release("r_android")
        func code(_ token: BearerToken, for destination: RequestDestination) async throws -> Refusal.Code? {
            var draft = Draft(method: "POST", target: Array("/x".utf8), authority: SessionScene.authority)
            draft.fields = [.init(name: "authorization", value: "Bearer \(token.text)")]
            try MessageSignatures().sign(
                &draft, as: Credentials(keyID: key.id, key: key.key), at: scene.base.now,
                nonce: "\(UInt64.random(in: 0...UInt64.max))")
            return await scene.judge(draft.request(), for: destination).code
        }
        scene.base.clock.now += 7_200
        #expect(try await code(first.token, for: .backend) == .tokenExpired)
        #expect(try await code(first.token, for: .logOut) == nil)
        let second = try await scene.renew(first.loginToken)
        #expect(try await code(first.token, for: .backend) == .tokenExpired)
        #expect(try await code(first.token, for: .logOut) == nil, "the renewal's answer was lost")
        scene.base.clock.now += 7_200
        #expect(try await code(second.token, for: .backend) == .tokenExpired)
        #expect(try await code(second.token, for: .logOut) == nil, "never used")
    }
}
