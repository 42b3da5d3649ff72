import ClientFakes
import CountersignSeal
import CountersignWire
import Synchronization
import CountersignTransport
import Testing

@testable import CountersignClient

@Suite struct LegacyRenewalTests {
    @Test("fifty requests at the token's end: one renewal, fifty answers, none done twice")
    func one() async throws {
        let world = try LegacyWorld()
        try await world.logIn()
        world.server.expire()
        let reads = world.items.reads
        let answers = try await withThrowingTaskGroup(of: String.self) { group in
            for number in 0..<50 { group.addTask { try await world.post("{\"n\":\(number)}") } }
            return try await group.reduce(into: Set()) { $0.insert($1) }
        }
        #expect(answers == Set((0..<50).map { #"{"done":"{\"n\":\#($0)}"}"# }))
        #expect(world.server.seen("/login/token.php").count == 1)
        #expect(world.items.reads - reads < 10, "one of them looks, and the others wait for it")
        let taken = world.server.seen("/api").filter { $0.token == "t2" }.map(\.body)
        #expect(taken.count == 50 && Set(taken).count == 50)
        #expect(world.server.seen("/api").contains { $0.token == "t1" }, "some were refused first")
    }

    @Test("two processes on one vault renew once")
    func processes() async throws {
        let world = try LegacyWorld()
        try await world.logIn()
        let other = try world.another()
        #expect(try await other.resume() == .active(account: "anna", userID: 7))
        world.server.expire()
        let gate = OldServer.Gate("/login/token.php")
        world.server.change { $0.hold = gate }
        async let first = world.post("1")
        async let second = LegacyCalls(other).send(LegacyRenewalTests.draft("2"))
        await gate.someoneWaits()
        gate.open()
        _ = try await (first, second)
        #expect(world.server.seen("/login/token.php").count == 1)
        #expect(world.server.seen("/api").filter { $0.token == "t2" }.count == 2)
    }

    @Test("a renewal that comes late does not bring back who signed out")
    func late() async throws {
        let world = try LegacyWorld()
        try await world.logIn()
        world.server.expire()
        let gate = OldServer.Gate("/login/token.php")
        world.server.change { $0.hold = gate }
        let answer = Task { try await world.post() }
        await gate.someoneWaits()
        try await world.account.logOut()
        gate.open()
        #expect(await problem { try await answer.value } == "notSignedIn")
        #expect(world.items.contents.isEmpty)
        #expect(world.said.last == .signedOut(.byUser))
    }

    @Test("nor does one in another process")
    func lateElsewhere() async throws {
        let world = try LegacyWorld()
        try await world.logIn()
        world.server.expire()
        let gate = OldServer.Gate("/login/token.php")
        world.server.change { $0.hold = gate }
        let answer = Task { try await world.post() }
        await gate.someoneWaits()
        try await world.another().logOut()
        gate.open()
        #expect(await problem { try await answer.value } != nil)
        #expect(world.items.contents.isEmpty)
        #expect(world.said.last == .signedOut(.byUser))
    }

    @Test("nor a login that was on its way")
    func lateLogin() async throws {
        let world = try LegacyWorld()
        let gate = OldServer.Gate("/login/login.php")
        world.server.change { $0.hold = gate }
        let login = Task { try await world.logIn() }
        await gate.someoneWaits()
        try await world.account.logOut()
        gate.open()
        #expect(await problem { try await login.value } != nil)
        #expect(world.items.contents.isEmpty)
    }

    @Test("who cancels the request that asked for it does not cancel it for the others")
    func cancelled() async throws {
        let world = try LegacyWorld()
        try await world.logIn()
        world.server.expire()
        let gate = OldServer.Gate("/login/token.php")
        world.server.change { $0.hold = gate }
        let first = Task { try await world.post("1") }
        await gate.someoneWaits()
        async let second = world.post("2")
        first.cancel()
        gate.open()
        #expect(try await second == #"{"done":"2"}"#)
        #expect(world.server.seen("/login/token.php").count == 1)
    }

    @Test("the second login ends the first, and nothing is sent any more")
    func replaced() async throws {
        let world = try LegacyWorld()
        try await world.logIn()
        world.server.replace()
        await #expect {
            _ = try await world.post()
        } throws: {
            guard case .sessionEnded(let notice)? = $0 as? ClientOperationError else { return false }
            return notice.instance == "event"
        }
        #expect(world.items.contents.isEmpty)
        let count = world.server.seen("/api").count
        #expect(await problem { try await world.post() } == "notSignedIn")
        #expect(world.server.seen("/api").count == count)
        #expect(world.server.seen("/login/token.php").isEmpty, "a login token does not help against -100")
    }

    @Test("it is found out at the renewal, too")
    func replacedBefore() async throws {
        let world = try LegacyWorld()
        try await world.logIn()
        world.server.expire()
        world.server.change { $0.session?.loginToken = "another" }
        #expect(await problem { try await world.post() } == "sessionEnded")
        guard case .signedOut(let end?)? = world.said.last, end.isTold else {
            return #expect(Bool(false), "\(world.said.all)")
        }
    }

    @Test("a refusal of the session before does not end the one after it")
    func relogin() async throws {
        let world = try LegacyWorld()
        try await world.logIn()
        let gate = OldServer.Gate("/api")
        world.server.change { $0.hold = gate }
        world.server.replace()
        let answer = Task { try await world.post() }
        await gate.someoneWaits()
        try await world.logIn()
        gate.open()
        #expect(try await answer.value == #"{"done":"{}"}"#)
        #expect(world.said.last == .active(account: "anna", userID: 7))
    }

    @Test("a retired version is told so, and sends nothing any more until the app goes on")
    func retired() async throws {
        let world = try LegacyWorld()
        try await world.logIn()
        world.server.change { $0.isRetired = true }
        await #expect {
            _ = try await world.post()
        } throws: {
            guard case .updateRequired(let notice)? = $0 as? ClientOperationError else { return false }
            return notice.updateURL == "https://example.com/new"
        }
        #expect(world.said.last == .updateRequired("https://example.com/new"))
        let count = world.server.state.withLock { $0.seen.count }
        for caller in [LegacyCalls.Caller.user, .app] {
            #expect(await problem { try await world.post(as: caller) } != nil)
        }
        #expect(await problem { try await world.logIn() } != nil)
        #expect(world.server.state.withLock { $0.seen.count } == count)
        world.server.change { $0.isRetired = false }
        #expect(try await world.account.resume() == .active(account: "anna", userID: 7))
        #expect(try await world.post() == #"{"done":"{}"}"#)
    }

    @Test("being offline ends nothing")
    func offline() async throws {
        let world = try LegacyWorld()
        try await world.logIn()
        world.server.expire()
        let gate = OldServer.Gate("/api")
        world.server.change { $0.hold = gate }
        let answer = Task { try await world.post() }
        await gate.someoneWaits()
        world.server.change { $0.isOffline = true }
        gate.open()
        await #expect {
            _ = try await answer.value
        } throws: {
            guard case .transport(let problem)? = $0 as? ClientOperationError else { return false }
            return problem.fate == .notSent
        }
        #expect(world.said.last == .active(account: "anna", userID: 7))
        world.server.change { $0.isOffline = false }
        #expect(try await world.post() == #"{"done":"{}"}"#)
    }

    @Test("a request whose answer was lost is not sent again; a renewal is")
    func lost() async throws {
        let world = try LegacyWorld()
        try await world.logIn()
        world.server.expire()
        world.server.change { $0.loses = ["/login/token.php"] }
        #expect(try await world.post() == #"{"done":"{}"}"#)
        #expect(world.server.seen("/login/token.php").count == 2)
        let count = world.server.seen("/api").count
        world.server.change { $0.loses = ["/api"] }
        await #expect {
            _ = try await world.post()
        } throws: {
            guard case .transport(let problem)? = $0 as? ClientOperationError else { return false }
            return problem.fate == .outcomeUnknown
        }
        #expect(world.server.seen("/api").count == count + 1)
    }

    @Test("a token that ran out where nothing gets another ends the session")
    func nothingToRenewWith() async throws {
        let world = try LegacyWorld(OldServer(tokens: .tokenOnly))
        try await world.logIn()
        world.server.expire()
        #expect(await problem { try await world.post() } != nil)
        #expect(world.said.last == .signedOut(.tokenExpired))
    }

    static func draft(_ body: String) -> Draft {
        var draft = Draft(method: "POST", target: Array("/api".utf8), authority: "old.example.com")
        draft.body = Array(body.utf8)
        return draft
    }
}
