import ClientFakes
import CountersignMemory
import CountersignTransport
import CountersignTrust
import Testing

@testable import Countersign

/// A request is sent for the account that was signed in when the app made the call, regardless of later
/// logins.
@Suite(.timeLimit(.minutes(15))) struct OwnerTests {
    /// Sends the request twice, and calls `meanwhile` in between.
    private struct Pausing: APIInterceptor {
        let meanwhile: @Sendable () async throws -> Void

        func intercept(_ request: APIRequest, next: InterceptorChain) async throws -> APIAnswer {
            _ = try await next(request)
            try await meanwhile()
            return try await next(request)
        }
    }

    /// A client that is set after its options are made.
    private final class Later: Sendable {
        private let client = Locked<CountersignClient?>(nil)

        func set(_ client: CountersignClient) { self.client.with { $0 = client } }

        func signIn(_ name: String) async throws {
            _ = try await #require(client.with { $0 }).logIn(name, "correct horse")
        }
    }

    private static func isOfAnother(_ error: any Error) -> Bool {
        if case CountersignError.accountChanged = error { true } else { false }
    }

    /// A single piece, preceded on the first read by the delay of the test.
    private struct Slowly: AsyncSequence, AsyncIteratorProtocol, Sendable {
        typealias Element = [UInt8]
        let first: @Sendable () async throws -> Void
        let isRead: Locked<Bool>
        var isOver = false

        func makeAsyncIterator() -> Slowly { self }

        mutating func next() async throws -> [UInt8]? {
            guard !isOver else { return nil }
            isOver = true
            let isFirst = isRead.with { isRead in
                defer { isRead = true }
                return !isRead
            }
            if isFirst { try await first() }
            return [1, 2, 3]
        }
    }

    /// A body that takes so long to be hashed that Bob signs in.
    private static func slowBody(_ client: CountersignClient) -> APIRequest.Body {
        let isRead = Locked(false)
        return .replayable(
            ReplayableBody(.bytes(3)) {
                Slowly(first: { _ = try await client.logIn("bob", "correct horse") }, isRead: isRead)
            })
    }

    @Test func whileABodyIsHashed() async throws {
        let world = try await World()
        let client = try await world.signedIn()
        try await client.signUp("bob", "correct horse")
        let request = APIRequest(.post, "/orders", body: OwnerTests.slowBody(client))
        await #expect(performing: { try await client.data(for: request) }, throws: OwnerTests.isOfAnother)
        #expect(client.state.account == "bob")
        #expect(await world.backend.copies(of: "/orders").isEmpty)
        #expect(try await client.data(for: APIRequest("/orders")).1.status == 200)
    }

    @Test func whileWhatAnotherStackIsToSendIsHashed() async throws {
        let world = try await World()
        let client = try await world.signedIn()
        try await client.signUp("bob", "correct horse")
        let request = APIRequest(.post, "/orders", body: OwnerTests.slowBody(client))
        await #expect(performing: { try await client.signed(request) }, throws: OwnerTests.isOfAnother)
        #expect(client.state.account == "bob")
    }

    @Test func whileTheBodyOfAnUploadTicketIsHashed() async throws {
        let world = try await World()
        let client = try await world.signedIn()
        try await client.signUp("bob", "correct horse")
        let request = APIRequest(.put, "/films/7", body: OwnerTests.slowBody(client))
        await #expect(
            performing: { try await client.uploadTicket(for: request) }, throws: OwnerTests.isOfAnother)
        #expect(client.state.account == "bob")
        #expect(await world.authority.uploadsAsked.isEmpty)
    }

    @Test func whileAPollRests() async throws {
        let world = try await World()
        let client = try await world.signedIn()
        try await client.signUp("bob", "correct horse")
        var rounds = client.poll(APIRequest("/news"), every: .milliseconds(1)).makeAsyncIterator()
        #expect(try await rounds.next()?.1.status == 200)
        try await client.logIn("bob", "correct horse")
        let copies = await world.backend.copies(of: "/news").count
        do {
            _ = try await rounds.next()
            Issue.record("a round in Bob's name")
        } catch {
            guard case .accountChanged = error else {
                Issue.record("\(error)")
                return
            }
        }
        #expect(await world.backend.copies(of: "/news").count == copies)
        #expect(try await rounds.next() == nil)
    }

    @Test func whileAnInterceptorWaits() async throws {
        let later = Later()
        let world = try await World { $0.interceptors = [Pausing { try await later.signIn("bob") }] }
        let client = try await world.signedIn()
        try await client.signUp("bob", "correct horse")
        later.set(client)
        await #expect(
            performing: { try await client.data(for: APIRequest(.post, "/orders")) },
            throws: OwnerTests.isOfAnother)
        #expect(client.state.account == "bob")
        #expect(await world.backend.copies(of: "/orders").count == 1)
    }

    /// A call made while signed out belongs to the first account that signs in, and to no later one.
    @Test func whereNobodyWasSignedIn() async throws {
        let later = Later()
        let world = try await World {
            $0.interceptors = [
                Pausing { try await later.signIn("bob") }, Early { try await later.signIn("alice") },
            ]
        }
        let client = try world.client()
        later.set(client)
        for name in ["alice", "bob"] { try await client.signUp(name, "correct horse") }
        await #expect(
            performing: { try await client.data(for: APIRequest(.post, "/orders")) },
            throws: OwnerTests.isOfAnother)
        #expect(await world.backend.copies(of: "/orders").count == 1)
    }

    /// Signs in when a call fails with `notSignedIn`.
    private struct Early: APIInterceptor {
        let signIn: @Sendable () async throws -> Void

        func intercept(_ request: APIRequest, next: InterceptorChain) async throws -> APIAnswer {
            do {
                return try await next(request)
            } catch CountersignError.notSignedIn {
                try await signIn()
                return try await next(request)
            }
        }
    }

    @Test func whileAnUpdateHoldsTraffic() async throws {
        let world = try await World { $0.whenPaused = .wait }
        let client = try await world.signedIn()
        try await client.signUp("bob", "correct horse")
        await world.backend.plan(.refuse("update-required"), at: "/orders")
        _ = try? await client.data(for: APIRequest("/orders"))
        let sent = await world.backend.copies(of: "/orders").count
        let waiting = await client.waitingRequest("/orders")
        try await client.logIn("bob", "correct horse")
        #expect(client.state == .updateRequired(url: nil))
        client.continueDespiteUpdate()
        await #expect(performing: { try await waiting.value }, throws: OwnerTests.isOfAnother)
        #expect(await world.backend.copies(of: "/orders").count == sent)
    }
}

extension CountersignState {
    fileprivate var account: String? {
        if case .active(let account) = self { account.name } else { nil }
    }
}
