import CountersignMemory
import CountersignTestKit
import CountersignTrust
import Testing

@testable import Countersign

/// Proves that a legacy client's calls pass interceptors, emit events and poll like those of
/// `CountersignClient`.
@Suite(.timeLimit(.minutes(15))) struct LegacyCallTests {
    static let renewed = #"{"token":"t-two"}"#
    static let ranOut = #"{"err":{"code":-101,"msg":"token"}}"#

    /// A server whose first token has expired if `isOut`.
    static func server(isOut: Bool = false) -> MockTransport {
        MockTransport { seen in
            switch seen.target {
            case "/login/login.php": return MockResponse(text: LegacyClientTests.login)
            case "/login/token.php": return MockResponse(text: renewed)
            default:
                let isOld = seen.value(of: "authorization") == "Bearer t-one"
                return isOut && isOld ? MockResponse(text: ranOut) : MockResponse(text: "done")
            }
        }
    }

    static func client(
        _ carrier: MockTransport, _ folder: TestFolder, scheme: LegacyScheme = .unsigned,
        _ change: (inout LegacyOptions) -> Void = { _ in }
    ) throws -> LegacyClient {
        var options = LegacyOptions()
        options.transport = .custom(carrier)
        change(&options)
        return try LegacyClient(
            scheme: scheme, baseURL: "https://old.example.com", login: LegacyLogin(.md5),
            vault: .folder(folder.path),
            trust: [
                .host("old.example.com", pins: [LegacyClientTests.pin], backups: [LegacyClientTests.backup])
            ],
            options: options)
    }

    private struct Order: Decodable, Equatable {
        let orderNumber: Int
    }

    @Test("values come in as JSON by the client's coding, and what is none is told apart from a failure")
    func values() async throws {
        let folder = try TestFolder()
        defer { withExtendedLifetime(folder) {} }
        let carrier = MockTransport { seen in
            switch seen.target {
            case "/orders": MockResponse(201, text: #"{"order_number":7}"#)
            case "/gone": MockResponse(404, text: #"{"order_number":7}"#)
            default: MockResponse(text: "{}")
            }
        }
        let client = try Self.client(carrier, folder) { $0.json = .snakeCase }
        let order = try await client.value(for: APIRequest("/orders").byTheApp(), as: Order.self)
        #expect(order == Order(orderNumber: 7))
        await #expect {
            try await client.value(for: APIRequest("/gone").byTheApp(), as: Order.self)
        } throws: { error in
            guard case CountersignError.status(let response, let body) = error else { return false }
            return response.status == 404 && body == Array(#"{"order_number":7}"#.utf8)
        }
        await #expect {
            try await client.value(for: APIRequest("/other").byTheApp(), as: Order.self)
        } throws: { error in
            if case CountersignError.decoding = error { true } else { false }
        }
    }

    @Test(
        "interceptors see each call before it is signed, the first outermost, and may respond"
    )
    func interceptors() async throws {
        let folder = try TestFolder()
        defer { withExtendedLifetime(folder) {} }
        let carrier = Self.server()
        let unsigned = try Self.client(carrier, folder) {
            $0.interceptors = [InterceptorTests.Marking(mark: "a"), InterceptorTests.Marking(mark: "b")]
        }
        try await unsigned.logIn("anna", "pass word")
        #expect(
            carrier.seen.last?.fields.contains { $0.name == "X-Mark" } == false, "a login is the client's own"
        )
        _ = try await unsigned.data(for: APIRequest("/orders"))
        #expect(carrier.seen.last?.fields.filter { $0.name == "X-Mark" }.map(\.value) == [[0x61], [0x62]])

        let answering = try Self.client(carrier, folder) { $0.interceptors = [InterceptorTests.Answering()] }
        let count = carrier.seen.count
        #expect(try await answering.data(for: APIRequest("/orders")).1.status == 299)
        #expect(carrier.seen.count == count)
        let throwing = try Self.client(carrier, folder) { $0.interceptors = [InterceptorTests.Throwing()] }
        await #expect { try await throwing.data(for: APIRequest("/orders")) } throws: { error in
            if case CountersignError.intercepted = error { true } else { false }
        }
    }

    /// Another account signs in between the two calls of an interceptor.
    struct Meanwhile: APIInterceptor {
        let happens: @Sendable () async throws -> Void

        func intercept(_ request: APIRequest, next: InterceptorChain) async throws -> APIAnswer {
            _ = try await next(request)
            try await happens()
            return try await next(request)
        }
    }

    @Test("a second call of an interceptor's is not made in the name of somebody else")
    func owner() async throws {
        let folder = try TestFolder()
        defer { withExtendedLifetime(folder) {} }
        let users = Locked(7)
        let carrier = MockTransport { seen in
            guard seen.target == "/login/login.php" else { return MockResponse(text: "done") }
            let user = users.with { user in
                user += 1
                return user
            }
            return MockResponse(text: #"{"userId":\#(user),"token":"t-\#(user)"}"#)
        }
        let other = Locked<LegacyClient?>(nil)
        let client = try Self.client(carrier, folder) {
            $0.interceptors = [Meanwhile { try await other.with { $0 }?.logIn("bob", "pass word") }]
        }
        other.with { $0 = client }
        try await client.logIn("anna", "pass word")
        await #expect { try await client.data(for: APIRequest("/orders")) } throws: { error in
            if case CountersignError.accountChanged = error { true } else { false }
        }
        #expect(carrier.seen.filter { $0.target == "/orders" }.count == 1)
        other.with { $0 = nil }
    }

    @Test("events tell of each call, each copy and why, of the renewal and of the state, and hold no secret")
    func events() async throws {
        let folder = try TestFolder()
        defer { withExtendedLifetime(folder) {} }
        let carrier = Self.server(isOut: true)
        let client = try Self.client(carrier, folder)
        let stream = client.events
        try await client.logIn("anna", "pass word")
        _ = try await client.data(for: APIRequest("/orders?secret=1"))
        await #expect(throws: CountersignError.self) {
            try await client.data(for: APIRequest("https://other.example.com/"))
        }
        var seen: [CountersignEvent] = []
        for await event in stream {
            seen.append(event)
            if case .failed = event { break }
        }
        #expect(seen.contains(.state(.active)))
        let refreshing = try #require(seen.firstIndex(of: .refreshing))
        #expect(seen[refreshing + 1] == .refreshed(.renewed))
        let copies = seen.compactMap { event -> (Int, CountersignEvent.Retry?)? in
            if case .sent(_, let copy, let why) = event { (copy, why) } else { nil }
        }
        #expect(copies.map(\.0) == [1, 2])
        #expect(copies.map(\.1) == [nil, .refused(code: "token-expired")])
        let answered = seen.compactMap { event -> String? in
            if case .answered(let call, 200, .nobody, _) = event { call.path } else { nil }
        }
        #expect(answered == ["/orders"])
        for event in seen {
            #expect(!"\(event)".contains("secret") && !"\(event)".contains("t-one"), "\(event)")
        }
    }

    @Test("polling goes on over a lost answer, and ends with the session, which it says once")
    func polls() async throws {
        let folder = try TestFolder()
        defer { withExtendedLifetime(folder) {} }
        let carrier = MockTransport([
            .answer(MockResponse(text: LegacyClientTests.login)), .answer(MockResponse(text: "one")),
            .fail(TransportError(.timedOut(.total), fate: .outcomeUnknown)),
            .answer(MockResponse(text: "two")),
            .answer(MockResponse(text: #"{"err":{"code":-100,"msg":"over"}}"#)),
        ])
        let client = try Self.client(carrier, folder)
        try await client.logIn("anna", "pass word")
        var rounds = client.poll(APIRequest("/news"), every: .milliseconds(1)).makeAsyncIterator()
        #expect(try await rounds.next()?.0.count == 3)
        #expect(try await rounds.next()?.0.elementsEqual("two".utf8) == true)
        do {
            _ = try await rounds.next()
            Issue.record("expected the session's end")
        } catch {
            guard case .signedOut = error else { throw error }
        }
        #expect(try await rounds.next() == nil)
        #expect(carrier.stepsLeft == 0)
    }
}
