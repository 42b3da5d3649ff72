import CountersignGate
import CountersignHandshake
import CountersignSeal
import CountersignWire
import Testing

@testable import CountersignAuthority

@Suite struct BearerSessionsTests {
    @Test("tokens are what the protocol says, each its own, and nothing of them is stored")
    func spelling() async throws {
        let scene = try BearerScene(["legacy-session=authority"])
        let grant = try await scene.open()
        #expect(grant.token.text.hasPrefix("b_") && grant.token.text.utf8.count == 45)
        #expect(grant.loginToken.text.hasPrefix("l_") && grant.loginToken.text.utf8.count == 45)
        #expect(grant.expires == scene.base.now + 7_200)
        #expect(grant.idle == scene.base.now + 90 * 86_400)
        #expect(BearerToken(Array(grant.token.text.utf8).span)?.session == grant.session, "as it is sent")
        #expect(
            LoginToken(Array(grant.loginToken.text.utf8).span)?.session(.keeping) == grant.session,
            "by its hash")
        for text in [
            "b_", "b_" + String(repeating: "A", count: 42), grant.token.text + "A", grant.loginToken.text,
        ] {
            #expect(BearerToken(Array(text.utf8).span) == nil)
        }
        let secrets = [grant.token.text, grant.loginToken.text].map { Array($0.utf8.dropFirst(2)) }
        for (name, bytes) in try scene.base.folder.contents() {
            for secret in secrets {
                guard let raw = Base64.decode(secret.span, as: .url) else {
                    throw OperationalError(.failed, message: "not base64url")
                }
                for form in [secret, raw, Array(raw.suffix(16))] {
                    #expect(bytes.firstRange(of: form) == nil, "\(name) holds a token")
                }
            }
        }
    }

    @Test("a token opens until it runs out; its login token gets the next, and only that one")
    func renewal() async throws {
        let scene = try BearerScene(["legacy-session=authority"])
        let first = try await scene.open()
        #expect(try await scene.code(bearing: first.token) == nil)
        scene.base.clock.now += 7_199
        #expect(try await scene.code(bearing: first.token) == nil)
        scene.base.clock.now += 1
        #expect(try await scene.code(bearing: first.token) == .tokenExpired)
        let second = try await scene.renew(first.loginToken)
        #expect(second.session == first.session && second.expires == scene.base.now + 7_200)
        #expect(second.token.text != first.token.text && second.loginToken.text != first.loginToken.text)
        #expect(try await scene.code(bearing: second.token) == nil)
        #expect(try await scene.code(bearing: first.token) == .tokenExpired)
        let third = try await scene.renew(second.loginToken)
        #expect(try await scene.code(bearing: first.token) == .sessionEnded, "two before is nobody's")
        #expect(try await scene.code(bearing: third.token) == nil)
    }

    @Test("an answer that was lost is had again, however late, until what it brought was used")
    func lostAnswer() async throws {
        let scene = try BearerScene(["legacy-session=authority"])
        var grant = try await scene.open()
        for round in 0..<20 {
            scene.base.clock.now += 60
            let lost = try await scene.renew(grant.loginToken)
            // Within seconds the renewal returns the same response; later it returns a new one, and the lost
            // token opens nothing.
            scene.base.clock.now += round % 2 == 0 ? 9 : 3_600
            let found = try await scene.renew(grant.loginToken)
            #expect((found.token.text == lost.token.text) == (round % 2 == 0))
            #expect((found.loginToken.text == lost.loginToken.text) == (round % 2 == 0))
            #expect(try await scene.code(bearing: found.token) == nil)
            grant = found
        }
        #expect(try scene.base.row(grant.session).end == nil)
    }

    @Test("many that renew at once get one answer")
    func atOnce() async throws {
        let scene = try BearerScene()
        let grant = try await scene.open()
        scene.base.clock.now += 60
        let answers = try await withThrowingTaskGroup(of: BearerGrant.self) { group in
            for _ in 0..<50 { group.addTask { try await scene.renew(grant.loginToken) } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(answers.count == 50)
        #expect(Set(answers.map(\.token.text)).count == 1 && Set(answers.map(\.loginToken.text)).count == 1)
        #expect(try scene.base.row(grant.session).end == nil)
    }

    @Test(
        "a login token that was renewed, and whose successor was used, ends the session",
        arguments: [0, 1, 5])
    func reuse(_ between: Int) async throws {
        let scene = try BearerScene(["legacy-session=authority"])
        let stolen = try await scene.open()
        var grant = stolen
        for _ in 0...between {
            scene.base.clock.now += 60
            grant = try await scene.renew(grant.loginToken)
        }
        #expect(try await scene.code(bearing: grant.token) == nil)
        // Runs after the queued change that records the use of the new token.
        try await scene.base.writer.write { _ in }
        scene.base.clock.now += 10
        #expect(try await scene.refusalOfRenewal(stolen.loginToken)?.code == .sessionEnded)
        #expect(try scene.base.row(grant.session).end?.reason == .reused)
        #expect(try await scene.code(bearing: grant.token) == .sessionEnded)
        #expect(try await scene.refusalOfRenewal(grant.loginToken)?.code == .sessionEnded)
        let records = try scene.base.deployment.auditRecords(last: 1)
        #expect(
            records.first.map { String(decoding: $0.record, as: UTF8.self).contains("session.reuse") } == true
        )
    }

    @Test("of two calls that ask at once, the second gets the same answer, though the first has used it")
    func usedMeanwhile() async throws {
        let scene = try BearerScene(["legacy-session=authority"])
        let old = try await scene.open()
        scene.base.clock.now += 7_200
        let first = try await scene.renew(old.loginToken)
        #expect(try await scene.code(bearing: first.token) == nil)
        try await scene.base.writer.write { _ in }
        scene.base.clock.now += 9
        let second = try await scene.renew(old.loginToken)
        #expect(second.token.text == first.token.text && second.loginToken.text == first.loginToken.text)
        #expect(try scene.base.row(first.session).end == nil)
    }

    @Test("who knows the session's id cannot end it with a login token of his own making")
    func forged() async throws {
        let scene = try BearerScene()
        let grant = try await scene.open()
        for _ in 0..<8 {
            let bytes = grant.session.bytes + SystemRandom().bytes(16)
            let text = Array("l_\(Base64.encode(bytes.span, as: .url))".utf8)
            guard let forged = LoginToken(text.span) else {
                throw OperationalError(.failed, message: "not well formed")
            }
            #expect(try await scene.refusalOfRenewal(forged)?.code == .sessionEnded)
        }
        #expect(try scene.base.row(grant.session).end == nil)
    }

    @Test("old clients keep their login token, and each renewal ends the token before")
    func keeping() async throws {
        let scene = try BearerScene(["legacy-session=authority"])
        let grant = try await scene.open()
        var before = grant.token
        for _ in 0..<5 {
            scene.base.clock.now += 7_200
            #expect(try await scene.code(bearing: before) == .tokenExpired)
            let next = try await scene.renew(grant.loginToken, .keeping)
            #expect(next.loginToken.text == grant.loginToken.text && next.token.text != before.text)
            let again = try await scene.renew(grant.loginToken, .keeping)
            #expect(again.token.text == next.token.text, "at once, the same")
            #expect(try await scene.code(bearing: next.token) == nil)
            before = next.token
        }
    }

    @Test("what renews without a signature, and keeps its login token, is for what the ladder opened")
    func othersThanTheLadders() async throws {
        let scene = try BearerScene(["legacy-session=authority"])
        let account = try scene.base.addAccount("alice")
        let login = BearerLogin(
            account: account.number, app: scene.base.app, release: nil,
            platform: try #require(Platform("android")),
            deviceClass: .phone,
            deviceName: "by login/password", credential: account.registration?.credential, renewing: .rotating
        )
        let grant = try #require(
            try await scene.bearers.open(login, policy: scene.policy(), at: scene.base.now))
        #expect(try await scene.refusalOfRenewal(grant.loginToken, .keeping)?.code == .sessionEnded)
        #expect(try scene.base.row(grant.session).end == nil, "and it goes on")
        _ = try await scene.renew(grant.loginToken, .rotating)
    }

    @Test("a session that was not renewed for its idle time is over")
    func idle() async throws {
        let scene = try BearerScene(["legacy-session=authority", "session-idle=1d"])
        let grant = try await scene.open()
        scene.base.clock.now += 86_400
        #expect(try await scene.code(bearing: grant.token) == .sessionEnded)
        #expect(try await scene.refusalOfRenewal(grant.loginToken)?.code == .sessionEnded)
        #expect(try scene.base.row(grant.session).end == nil, "by another clock it may go on")
    }

    @Test("a session ends at its greatest age, however often it is renewed")
    func greatestAge() async throws {
        let scene = try BearerScene(["legacy-session=authority", "session-max=1h", "token-lifetime=40m"])
        let began = scene.base.now
        let grant = try await scene.open()
        scene.base.clock.now = began + 1_800
        let renewed = try await scene.renew(grant.loginToken)
        #expect(renewed.expires == began + 3_600 && renewed.idle == began + 3_600)
        scene.base.clock.now = began + 3_600
        #expect(try await scene.code(bearing: renewed.token) == .sessionEnded)
        #expect(try await scene.refusalOfRenewal(renewed.loginToken)?.code == .sessionEnded)
        #expect(try scene.base.row(grant.session).end == nil, "by another clock it may go on")
    }

    @Test("another app's login token is nobody's")
    func otherApp() async throws {
        let scene = try BearerScene()
        let grant = try await scene.open()
        let other = try #require(AppName("other"))
        await #expect(throws: Refusal.self) { try await scene.renew(grant.loginToken, of: other) }
        #expect(try scene.base.row(grant.session).end == nil)
    }

    @Test("another app neither finds a session by its token nor ends it by either of its tokens")
    func tokensOfAnotherApp() async throws {
        let scene = try BearerScene()
        let grant = try await scene.open()
        let other = try #require(AppName("other"))
        let (token, loginToken) = (Array("\(grant.token.text)".utf8), Array("\(grant.loginToken.text)".utf8))
        #expect(try await scene.bearers.session(bearing: token, of: scene.base.app)?.id == grant.session)
        #expect(try await scene.bearers.session(bearing: token, of: other) == nil)
        for (app, ends) in [(other, false), (scene.base.app, true)] {
            try await scene.bearers.signOut(token: nil, loginToken: loginToken, of: app, at: scene.base.now)
            #expect(try (scene.base.row(grant.session).end != nil) == ends)
        }
    }

    @Test("the second login ends the first; its token and its login token then say so")
    func replaced() async throws {
        let scene = try BearerScene(["legacy-session=authority"])
        let (first, second) = (try await scene.open(), try await scene.open())
        #expect(try await scene.code(bearing: first.token) == .sessionEnded)
        #expect(try await scene.refusalOfRenewal(first.loginToken)?.code == .sessionEnded)
        #expect(try await scene.code(bearing: second.token) == nil)
        #expect(try scene.base.row(first.session).end?.reason == .replaced)
    }

    @Test("a login token that nobody has takes no place in the writer's line")
    func madeUp() async throws {
        let scene = try BearerScene()
        let grant = try await scene.open()
        scene.base.writer.stop()
        #expect(try await scene.refusalOfRenewal(LoginToken(random: SystemRandom()))?.code == .sessionEnded)
        #expect(
            try await scene.refusalOfRenewal(grant.loginToken)?.code == .unavailable,
            "one that somebody has does")
    }

    @Test("an account that is locked, or whose password was set anew, gets no session")
    func accountChanged() async throws {
        let scene = try BearerScene()
        let recorded = scene.base.deployment.auditDraft(
            for: .accountLock, on: .account(scene.account.name, of: scene.base.app))
        _ = try scene.base.deployment.store.change(
            scene.account.number, if: .anything, applying: .lock, at: scene.base.now, recording: recorded)
        let login = BearerLogin(
            account: scene.account.number, app: scene.base.app, release: nil,
            platform: try #require(Platform("ios")),
            deviceClass: .other, deviceName: "x", credential: nil, renewing: .keeping)
        #expect(try await scene.bearers.open(login, policy: scene.policy(), at: scene.base.now) == nil)
    }
}
