import ClientFakes
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Synchronization
import Testing

@testable import CountersignClient

/// Events that change the session while a request is in transit.
@Suite struct LegacyRaceTests {
    @Test("what one user wished is not sent again in another's name", arguments: [-101, -100])
    func another(_ code: Int) async throws {
        let world = try LegacyWorld()
        try await world.logIn()
        if code == -101 { world.server.expire() } else { world.server.replace() }
        let gate = OldServer.Gate("/api")
        world.server.change { $0.hold = gate }
        let annas = Task { try await world.post("anna's") }
        await gate.someoneWaits()
        world.server.change { $0.session?.token = "b1" }
        try await world.account.logOut()
        try await world.account.adopt(
            LegacySession(
                account: "berta", userID: 8, token: Secret(copying: Array("b1".utf8).span), loginToken: nil,
                expires: nil))
        gate.open()
        #expect(await problem { try await annas.value } == "accountChanged")
        #expect(world.server.seen("/api").map(\.token) == ["t1"], "once, and as who asked")
        #expect(try await world.post("berta's") == #"{"done":"berta's"}"#)
        #expect(world.server.done == ["berta's"])
    }

    @Test("a login that was on its way does not bring back who signed out in another process")
    func lateLogin() async throws {
        let world = try LegacyWorld()
        try await world.logIn()
        let gate = OldServer.Gate("/login/login.php")
        world.server.change { $0.hold = gate }
        let login = Task { try await world.logIn() }
        await gate.someoneWaits()
        try await world.another().logOut()
        gate.open()
        #expect(await problem { try await login.value } == "notSignedIn")
        #expect(world.items.contents.isEmpty)
        #expect(world.said.last == .signedOut(.byUser))
    }

    @Test("the end of the session before does not throw a login away that was on its way")
    func replacing() async throws {
        let world = try LegacyWorld()
        try await world.logIn()
        let gate = OldServer.Gate("/login/login.php")
        world.server.change { $0.hold = gate }
        let login = Task { try await world.logIn() }
        await gate.someoneWaits()
        #expect(await problem { try await world.post() } == "sessionEnded", "the login replaced it")
        gate.open()
        try await login.value
        #expect(try await world.post() == #"{"done":"{}"}"#)
        #expect(world.said.last == .active(account: "anna", userID: 7))
    }

    @Test("a login takes the place of what another process wrote meanwhile")
    func written() async throws {
        let world = try LegacyWorld()
        let gate = OldServer.Gate("/login/login.php")
        world.server.change { $0.hold = gate }
        let login = Task { try await world.logIn() }
        await gate.someoneWaits()
        try await world.another().adopt(
            LegacySession(account: "berta", userID: 8, token: nil, loginToken: nil, expires: nil))
        #expect(!world.items.contents.isEmpty)
        gate.open()
        try await login.value
        #expect(try await world.kept().session?.account == "anna")
    }

    @Test("a renewal that was on its way does not lift the stop for an update")
    func renewedUnderStop() async throws {
        let world = try LegacyWorld()
        try await world.logIn()
        world.server.expire()
        let gate = OldServer.Gate("/login/token.php")
        world.server.change { $0.hold = gate }
        let first = Task { try await world.post() }
        await gate.someoneWaits()
        try await retire(world)
        gate.open()
        #expect(await problem { try await first.value } == "updateRequired")
        #expect(world.said.last == .updateRequired("https://example.com/new"))
        #expect(world.server.done.isEmpty)
        #expect(try await world.account.resume() == .active(account: "anna", userID: 7))
        #expect(try await world.post() == #"{"done":"{}"}"#, "with the token that came under the stop")
        #expect(world.server.seen("/login/token.php").count == 1)
    }

    @Test("nor does the end of the session, which is told once the app goes on")
    func endedUnderStop() async throws {
        let world = try LegacyWorld()
        try await world.logIn()
        world.server.replace()
        let gate = OldServer.Gate("/api")
        world.server.change { $0.hold = gate }
        let first = Task { try await world.post() }
        await gate.someoneWaits()
        world.server.change { $0.hold = nil }
        try await retire(world)
        gate.open()
        #expect(await problem { try await first.value } == "sessionEnded")
        #expect(world.said.last == .updateRequired("https://example.com/new"))
        #expect(await problem { try await world.post(as: .app) } == "updateRequired")
        #expect(await problem { try await world.logIn() } == "updateRequired")
        guard case .signedOut(let end?) = try await world.account.resume(), end.isTold else {
            return #expect(Bool(false), "\(world.said.all)")
        }
        guard case .signedOut(let end?)? = world.said.last, end.isTold else {
            return #expect(Bool(false), "\(world.said.all)")
        }
    }

    @Test("logins and renewals go by the transport that comes to an end by itself, and nothing else does")
    func ways() async throws {
        let (requests, own) = (OldServer(), OldServer())
        var server = LegacyServer(
            host: "old.example.com", transport: .tls, signing: .none, userAgent: "test", channel: .pinned)
        let door = LegacyLoginRoute(.plainPost, settings: LadderSettings())
        server.login = door
        let exchange = LegacyExchange(
            server, transport: requests, own: own, now: { 0 }, random: SystemRandom())
        let answer = try await exchange.logIn(
            "anna", value: Secret(copying: Array("pass word+1".utf8).span), at: door)
        _ = try await exchange.renew(with: try #require(answer.loginToken))
        _ = try await exchange.send(
            LegacyRenewalTests.draft("1"), as: LegacySession(account: "anna", response: answer))
        #expect(own.state.withLock { $0.seen.map(\.path) } == ["/login/login.php", "/login/token.php"])
        #expect(requests.state.withLock { $0.seen.map(\.path) } == ["/api"])
    }

    /// The account learns of an update by its own request; then the server serves again.
    private func retire(_ world: LegacyWorld) async throws {
        world.server.change { $0.isRetired = true }
        #expect(await problem { try await world.post(as: .app) } == "updateRequired")
        world.server.change { $0.isRetired = false }
    }

    @Test("where the app stops asking for it, what signs in is not used, and is gone with the next launch")
    func withdrawn() async throws {
        let world = try LegacyWorld(OldServer(tokens: .tokenOnly), remembering: .whatSignsIn)
        try await world.logIn()
        #expect(String(decoding: world.items.contents, as: UTF8.self).contains("pass word+1"))
        let later = try world.another(remembering: .nothing)
        world.server.expire()
        let draft = LegacyRenewalTests.draft("1")
        let launched = try world.another(remembering: .nothing)
        #expect(try await launched.resume() == .active(account: "anna", userID: 7), "the session stays")
        #expect(!String(decoding: world.items.contents, as: UTF8.self).contains("pass word+1"))
        #expect(await problem { try await LegacyCalls(later).send(draft) } == "notSignedIn")
        #expect(world.server.seen("/login/login.php").count == 1)
    }

    @Test("nor is it used by who does not ask for it, before that")
    func unused() async throws {
        let world = try LegacyWorld(OldServer(tokens: .tokenOnly), remembering: .whatSignsIn)
        try await world.logIn()
        world.server.expire()
        let later = LegacyCalls(try world.another(remembering: .nothing))
        #expect(await problem { try await later.send(LegacyRenewalTests.draft("1")) } == "notSignedIn")
        #expect(world.server.seen("/login/login.php").count == 1)
    }
}
