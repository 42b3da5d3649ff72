import CountersignMemory
import CountersignTestKit
import CountersignTransport
import Testing

@testable import Countersign

/// A legacy client's cookies, repetitions, log and log-out at the server: each off by default, and each like
/// those of `CountersignClient` as far as such a server allows.
@Suite(.timeLimit(.minutes(15))) struct LegacyConvenienceTests {
    private static let quick = APIRetryPolicy(
        attempts: 3, firstDelay: .milliseconds(1), longestDelay: .seconds(2))
    private static let isLost = TransportError(.connectionLost("test"), fate: .outcomeUnknown)

    /// Fails the first requests to paths below `/flaky`, as often as `failures` says, and answers others.
    private static func flaky(_ failures: [MockStep]) -> MockTransport {
        let left = Locked(failures)
        return MockTransport { seen async throws(TransportError) in
            if seen.target == "/login/login.php" { return MockResponse(text: LegacyClientTests.login) }
            guard seen.target.hasPrefix("/flaky") else { return MockResponse(text: "done") }
            switch left.with({ $0.isEmpty ? nil : $0.removeFirst() }) {
            case .fail(let error)?: throw error
            case .answer(let response)?: return response
            default: return MockResponse(text: "done")
            }
        }
    }

    // MARK: Repetition

    @Test(arguments: [
        MockStep.fail(TransportError(.offline, fate: .notSent)), .fail(isLost), .answer(MockResponse(503)),
    ])
    func aSafeRequestIsSentAgain(_ failure: MockStep) async throws {
        let folder = try TestFolder()
        defer { withExtendedLifetime(folder) {} }
        let carrier = Self.flaky([failure, failure])
        let form = try #require(LegacyClientTests.form)
        let client = try LegacyCallTests.client(carrier, folder, scheme: form) { $0.retry = Self.quick }
        try await client.logIn("anna", "pass word")
        let events = client.events
        #expect(try await client.data(for: APIRequest("/flaky")).1.status == 200)
        let targets = carrier.seen.map(\.target).filter { $0.hasPrefix("/flaky") }
        #expect(targets.count == 3 && Set(targets).count == 3, "each copy has a nonce of its own")
        let again = await first(of: events) {
            if case .sent(_, copy: 2, because: .backOff) = $0 { true } else { false }
        }
        #expect(again != nil)
    }

    @Test("an unsafe request is not sent again, whatever its key: the server recognizes no copy")
    func unsafe() async throws {
        let folder = try TestFolder()
        defer { withExtendedLifetime(folder) {} }
        for failure in [MockStep.fail(Self.isLost), .answer(MockResponse(503))] {
            let carrier = Self.flaky([failure])
            let client = try LegacyCallTests.client(carrier, folder) { $0.retry = Self.quick }
            try await client.logIn("anna", "pass word")
            var request = APIRequest(.post, "/flaky", body: .bytes([1]))
            request.idempotencyKey = "key"
            _ = try? await client.data(for: request)
            #expect(carrier.seen.count { $0.target == "/flaky" } == 1)
        }
    }

    @Test("by default, and in rounds of polling, a request is sent once")
    func once() async throws {
        let folder = try TestFolder()
        defer { withExtendedLifetime(folder) {} }
        let carrier = Self.flaky([.answer(MockResponse(503)), .answer(MockResponse(503))])
        let usual = try LegacyCallTests.client(carrier, folder)
        try await usual.logIn("anna", "pass word")
        #expect(try await usual.data(for: APIRequest("/flaky")).1.status == 503)
        let polling = try LegacyCallTests.client(carrier, folder) { $0.retry = Self.quick }
        var rounds = polling.poll(APIRequest("/flaky"), every: .seconds(60)).makeAsyncIterator()
        #expect(try await rounds.next()?.1.status == 503)
        #expect(carrier.seen.count { $0.target == "/flaky" } == 2)
    }

    // MARK: Cookies

    private static func set(_ cookies: String...) -> [HeaderField] {
        cookies.map { HeaderField("Set-Cookie", value: $0) }
    }

    /// Logins set `sid`, numbered; `/theme` sets another cookie.
    private static func cookieServer() -> MockTransport {
        let logins = Locked(0)
        return MockTransport { seen in
            switch seen.target {
            case "/login/login.php":
                let number = logins.with { number in
                    number += 1
                    return number
                }
                guard !String(decoding: seen.body, as: UTF8.self).contains("wrong") else {
                    return MockResponse(fields: set("sid=none; Path=/"), text: #"{"userId":0}"#)
                }
                let user = String(decoding: seen.body, as: UTF8.self).contains("bob") ? 8 : 7
                return MockResponse(
                    fields: set("sid=\(number); Path=/", "door=\(number)"),
                    text: #"{"userId":\#(user),"token":"t"}"#)
            case "/theme": return MockResponse(fields: set("theme=dark; Path=/"), text: "done")
            default: return MockResponse(text: "done")
            }
        }
    }

    @Test("the server's cookies are kept, those of the login too, until another account signs in")
    func cookies() async throws {
        let folder = try TestFolder()
        defer { withExtendedLifetime(folder) {} }
        let carrier = Self.cookieServer()
        let client = try LegacyCallTests.client(carrier, folder) { $0.cookies = .keptUntilSignOut }
        func sent(_ path: String = "/orders") async throws -> String? {
            _ = try await client.data(for: APIRequest(path))
            return carrier.seen.last?.value(of: "cookie")
        }
        try await client.logIn("anna", "pass word")
        #expect(try await sent() == "sid=1")
        #expect(try await sent("/login/more") == "door=1; sid=1", "below the login's folder")
        #expect(try await sent("/theme") == "sid=1")
        #expect(try await sent() == "sid=1; theme=dark")
        let own = APIRequest(.get, "/orders", fields: [HeaderField("Cookie", value: "mine=1")])
        _ = try await client.data(for: own)
        #expect(carrier.seen.last?.value(of: "cookie") == "mine=1")
        // A failed login sets none.
        await #expect(throws: CountersignError.self) { try await client.logIn("wrong", "pass word") }
        #expect(try await sent() == "sid=1; theme=dark")
        // The same account again: its cookies stay, and the login's are new.
        try await client.logIn("anna", "pass word")
        #expect(try await sent() == "sid=3; theme=dark")
        try await client.logIn("bob", "pass word")
        #expect(try await sent() == "sid=4")
        try await client.logOut()
        #expect(client.cookies.cookies.isEmpty)
    }

    @Test("a response to the former account's request sets nothing")
    func late() async throws {
        let folder = try TestFolder()
        defer { withExtendedLifetime(folder) {} }
        let other = Locked<LegacyClient?>(nil)
        let carrier = MockTransport { seen async throws(TransportError) in
            if seen.target == "/login/login.php" { return MockResponse(text: LegacyClientTests.login) }
            try? await other.with { $0 }?.logOut()
            return MockResponse(fields: Self.set("sid=anna"), text: "done")
        }
        let client = try LegacyCallTests.client(carrier, folder) { $0.cookies = .keptUntilSignOut }
        other.with { $0 = client }
        try await client.logIn("anna", "pass word")
        _ = try await client.data(for: APIRequest("/orders"))
        #expect(client.cookies.cookies.isEmpty)
        other.with { $0 = nil }
    }

    @Test("without the option nothing is kept")
    func ignored() async throws {
        let folder = try TestFolder()
        defer { withExtendedLifetime(folder) {} }
        let carrier = Self.cookieServer()
        let client = try LegacyCallTests.client(carrier, folder)
        try await client.logIn("anna", "pass word")
        for _ in 0..<2 { _ = try await client.data(for: APIRequest("/theme")) }
        #expect(carrier.seen.allSatisfy { $0.value(of: "cookie") == nil } && client.cookies.cookies.isEmpty)
    }

    // MARK: The log

    @Test("a log has a line for each event, and no secret")
    func log() async throws {
        let folder = try TestFolder()
        defer { withExtendedLifetime(folder) {} }
        let entries = Broadcast<CountersignLog.Entry>(.recent(100))
        var stream = entries.stream().makeAsyncIterator()
        let carrier = LegacyCallTests.server(isOut: true)
        let form = try #require(LegacyClientTests.form)
        let client = try LegacyCallTests.client(carrier, folder, scheme: form) { options in
            options.log = .handler(from: .debug) { entries.tell($0) }
            options.logoutPath = "/login/logout.php"
        }
        try await client.logIn("anna", "pass word")
        _ = try await client.data(for: APIRequest("/orders?secret=1"))
        try await client.logOut()
        var lines: [String] = []
        while let line = await stream.next()?.message {
            lines.append(line)
            if line.contains("/login/logout.php: 200") { break }
        }
        #expect(lines.contains("the state is active"))
        #expect(lines.contains { $0.hasPrefix("#1 GET old.example.com/orders: 200") })
        for secret in ["pass word", "t-one", "t-two", "l-one", "secret", "anna"] {
            #expect(!lines.contains { $0.contains(secret) }, "\(secret)")
        }
    }

    // MARK: Log-out

    /// What a log-out sent; nil if nothing.
    private func logOut(
        answering steps: [MockStep], scheme: LegacyScheme = .unsigned, path: String? = "/user/logout",
        cookies: CountersignOptions.Cookies = .ignored
    ) async throws -> (result: LegacyClient.LogOutResult, sent: [RecordedRequest], state: CountersignState) {
        let folder = try TestFolder()
        defer { withExtendedLifetime(folder) {} }
        let login = MockResponse(fields: Self.set("sid=7; Path=/"), text: LegacyClientTests.login)
        let carrier = MockTransport([.answer(login)] + steps)
        let client = try LegacyCallTests.client(carrier, folder, scheme: scheme) { options in
            options.logoutPath = path
            options.cookies = cookies
        }
        try await client.logIn("anna", "pass word")
        let result = try await client.logOut()
        #expect(carrier.stepsLeft == 0)
        #expect(try await LegacyCallTests.client(carrier, folder).resume() == .signedOut(.nobody))
        return (result, Array(carrier.seen.dropFirst()), client.state)
    }

    private static let signedOut = CountersignState.signedOut(.ended(SessionEnd(.signedOut)))

    @Test("the server is told, with both tokens where it has them")
    func told() async throws {
        let done = MockStep.answer(MockResponse(text: #"{"result":1}"#))
        let bearer = try await logOut(answering: [done], cookies: .keptUntilSignOut)
        #expect(bearer.result == .serverKnows && bearer.state == Self.signedOut)
        let sent = try #require(bearer.sent.first)
        #expect(sent.method == "POST" && sent.target == "/user/logout" && bearer.sent.count == 1)
        #expect(
            sent.value(of: "authorization") == "Bearer t-one" && sent.body == Array("loginToken=l-one".utf8))
        #expect(sent.value(of: "cookie") == "sid=7")

        let form = try #require(LegacyClientTests.form)
        let signed = try #require(try await logOut(answering: [done], scheme: form).sent.first)
        let body = String(decoding: signed.body, as: UTF8.self)
        for part in ["loginToken=l-one", "&userId=7", "&token=t-one", "&app_id=app", "&sign="] {
            #expect(body.contains(part), "\(part)")
        }
        #expect(signed.value(of: "authorization") == nil && signed.value(of: "cookie") == nil)
    }

    @Test(
        "whatever the server answers, nobody is signed in here",
        arguments: [
            ([MockStep.answer(MockResponse(text: #"{"err":{"code":-100,"msg":"gone"}}"#))], .serverKnows),
            ([.answer(MockResponse(text: #"{"err":{"code":-13,"msg":"later"}}"#))], .serverWasNotTold),
            ([.answer(MockResponse(404))], .serverWasNotTold),
            ([.fail(isLost), .answer(MockResponse())], .serverKnows),
            ([.fail(isLost), .fail(isLost)], .serverWasNotTold),
            ([.fail(TransportError(.offline, fate: .notSent))], .serverWasNotTold),
        ] as [([MockStep], LegacyClient.LogOutResult)])
    func answers(_ steps: [MockStep], _ result: LegacyClient.LogOutResult) async throws {
        let done = try await logOut(answering: steps)
        #expect(done.result == result && done.state == Self.signedOut)
    }

    @Test("a server without such a path is told nothing; a path that is none is misuse")
    func noPath() async throws {
        let done = try await logOut(answering: [], path: nil)
        #expect(done.result == .serverWasNotTold && done.sent.isEmpty)
        let folder = try TestFolder()
        defer { withExtendedLifetime(folder) {} }
        await #expect(throws: CountersignError.self) {
            _ = try await self.logOut(answering: [], path: "https://other.example.com/logout")
        }
    }
}
