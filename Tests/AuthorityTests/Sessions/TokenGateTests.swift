import CountersignGate
import CountersignHandshake
import CountersignSchemes
import CountersignWire
import Testing

@testable import CountersignAuthority

/// The gate's decisions on requests that bear a token and no signature: the token opens only the app at its
/// own host and only for sessions without signatures, and a request has one token, one user and, if a browser
/// added the token, the right Origin.
@Suite struct TokenGateTests {
    @Test("a token sent alone is good at its app's host, and at no other app's")
    func otherApp() async throws {
        let scene = try TokenScene()
        let bearer = try await scene.bearer()
        #expect(await scene.judge("GET", bearer) == .success("id:42"))
        #expect(await scene.judge("GET", bearer, at: TokenScene.otherHost).code == .sessionEnded)
    }

    @Test("the token of a session that was opened with a signature is not accepted alone")
    func signedLogin() async throws {
        let scene = try TokenScene()
        let signed = Draft.Field(
            name: "authorization", value: "Bearer \(try await scene.bearers.open().token.text)")
        #expect(await scene.judge("GET", [signed]).code == .sessionEnded)
    }

    @Test("a request with tokens at two places is refused, even if they are equal")
    func twoTokens() async throws {
        let scene = try TokenScene()
        let (one, other) = (try await scene.open(), try await scene.open())
        for second in [one, other] {
            let fields = [
                Draft.Field(name: "authorization", value: "Bearer \(one)"),
                Draft.Field(name: "x-token", value: second),
            ]
            #expect(await scene.judge("GET", [fields[0]]) == .success("id:42"))
            #expect(await scene.judge("GET", [fields[1]]) == .success("id:42"))
            #expect(await scene.judge("GET", fields).code == .malformed)
        }
    }

    @Test("a changing request with its token in a cookie needs the Origin of its host")
    func cookieOrigin() async throws {
        let scene = try TokenScene()
        let cookie = Draft.Field(name: "cookie", value: "sid=\(try await scene.open())")
        func judge(_ method: String, from origin: String?) async -> Result<String?, Refusal> {
            await scene.judge(method, [cookie] + (origin.map { [.init(name: "origin", value: $0)] } ?? []))
        }
        for method in ["POST", "PUT", "DELETE"] {
            for origin in [nil, "null", "https://evil.example", "https://\(TokenScene.otherHost)"] {
                #expect(
                    await judge(method, from: origin).code == .forbidden, "\(method) of \(origin ?? "none")")
            }
            #expect(await judge(method, from: "https://\(SessionScene.authority)") == .success("id:42"))
        }
        // A page of another site may cause a read, but not see the response.
        #expect(await judge("GET", from: nil) == .success("id:42"))
        #expect(await judge("GET", from: "https://evil.example") == .success("id:42"))
    }

    @Test("a token that is renewed while the body of its request is awaited has expired when that arrives")
    func renewedBeforeBody() async throws {
        let scene = try TokenScene()
        let grant = try await scene.grant()
        var draft = Draft(method: "POST", target: Array("/api".utf8), authority: SessionScene.authority)
        draft.fields = [.init(name: "authorization", value: "Bearer \(grant.token.text)")]
        draft.body = Array("body".utf8)
        var request = try draft.request()
        request.bodyState = .awaited
        let judgement = scene.gate.beginJudgement()
        defer { scene.gate.endJudgement(judgement) }
        try await scene.gate.waitingForLookups(of: judgement) { () throws(Refusal) in
            try scene.gate.judgeHead(of: request, recordingIn: judgement)
        }
        scene.bearers.base.clock.now += BearerSessions.sameAnswerSeconds + 1
        let renewed = try await scene.bearers.renew(grant.loginToken, .keeping)
        #expect(renewed.token.text != grant.token.text)
        request.bodyState = .whole
        do throws(Refusal) {
            _ = try await scene.gate.judge(request, recordingIn: judgement)
            Issue.record("the token before the renewal was accepted")
        } catch {
            #expect(error.code == .tokenExpired)
        }
    }

    @Test("the user that a request states must be the token's", arguments: ["7", "43", "24", "042", "42 0"])
    func statedUser(_ other: String) async throws {
        let scene = try TokenScene()
        let bearer = try await scene.bearer()
        let form = Draft.Field(name: "content-type", value: "application/x-www-form-urlencoded")
        for (id, code) in [("42", nil), (other, .sessionEnded)] as [(String, Refusal.Code?)] {
            let field = Draft.Field(name: "x-user-id", value: id)
            #expect(await scene.judge("GET", bearer + [field]).code == code)
            let encoded = id.replacing(" ", with: "%20")
            #expect(await scene.judge("POST", bearer + [form], body: "userId=\(encoded)").code == code)
        }
    }
}

/// An app that accepts tokens without signatures, another at another host, and a gate before both.
private struct TokenScene {
    static let otherHost = "other.example.com"

    let bearers: BearerScene
    let gate: Gate

    init() throws {
        let settings = [
            "schemes=message-signatures,form-md5,token", "legacy-session=authority", "slots=unlimited",
            "token-in=bearer,cookie:sid,header:x-token", "user-in=form:userId,header:x-user-id",
        ]
        bearers = try BearerScene(settings + ["legacy-host=\(SessionScene.authority)"])
        let base = bearers.base
        let other = try #require(AppName("other"))
        _ = try base.deployment.addApp(
            other, settings: settings + ["legacy-host=\(TokenScene.otherHost)"], requiring: .signed, at: 5)
        gate = Gate(
            allowedHosts: AllowedHosts([SessionScene.authority, TokenScene.otherHost]), keys: base.keys,
            sessions: base.lookups, replay: base.replay, lookups: base.lookups, clock: base.clock)
    }

    /// The token of a new session that was opened without a signature.
    func open() async throws -> String { try await grant().token.text }

    /// The same with the login token, which renews it.
    func grant() async throws -> BearerGrant {
        let base = bearers.base
        var login = BearerLogin(
            account: bearers.account.number, app: base.app, release: nil,
            platform: try #require(Platform("android")), deviceClass: .other, deviceName: "android",
            credential: nil, renewing: .keeping)
        login.opening = .unsigned
        let policy = try bearers.policy()
        return try #require(try await bearers.bearers.open(login, policy: policy, at: base.now))
    }

    func bearer() async throws -> [Draft.Field] {
        [.init(name: "authorization", value: "Bearer \(try await open())")]
    }

    /// The user of the session that a request without a signature is accepted for.
    func judge(
        _ method: String, _ fields: [Draft.Field], body: String = "", at host: String = SessionScene.authority
    ) async -> Result<String?, Refusal> {
        var draft = Draft(method: method, target: Array("/api".utf8), authority: host)
        draft.fields = fields
        draft.body = Array(body.utf8)
        do throws(Refusal) {
            return .success(try await gate.judge(draft.request()).session?.account.subject)
        } catch {
            return .failure(error)
        }
    }
}
