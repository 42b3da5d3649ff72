import CountersignSeal
import CountersignTransport
import CountersignWire
import Testing

@testable import Countersign

/// The requests that are repeated after a wait, how often, and those that never are.
@Suite(.timeLimit(.minutes(15))) struct RetryTests {
    private static let quick = APIRetryPolicy(
        attempts: 3, firstDelay: .milliseconds(1), longestDelay: .seconds(2))
    private static let offline = TransportError(.offline, fate: .notSent)

    private func world(_ retry: APIRetryPolicy = quick) async throws -> (World, CountersignClient) {
        let world = try await World { $0.retry = retry }
        return (world, try await world.signedIn())
    }

    @Test func aSafeRequestIsSentAgain() async throws {
        let (world, client) = try await world()
        await world.backend.plan(.fail(RetryTests.offline), at: "/orders")
        await world.backend.plan(.answer(503), at: "/orders")
        let events = client.events
        let (_, response) = try await client.data(for: APIRequest("/orders"))
        #expect(response.status == 200)
        #expect(await world.backend.copies(of: "/orders").count == 3)
        let again = await first(of: events) {
            if case .sent(_, copy: 2, because: .backOff) = $0 { true } else { false }
        }
        #expect(again != nil)
    }

    @Test func theLastFailureIsTheCallers() async throws {
        let (world, client) = try await world()
        for _ in 0..<3 { await world.backend.plan(.fail(RetryTests.offline), at: "/orders") }
        await #expect { try await client.data(for: APIRequest("/orders")) } throws: { error in
            (error as? CountersignError)?.isOffline == true
        }
        #expect(await world.backend.copies(of: "/orders").count == 3)
        for _ in 0..<3 { await world.backend.plan(.answer(502), at: "/items") }
        #expect(try await client.data(for: APIRequest("/items")).1.status == 502)
        #expect(await world.backend.copies(of: "/items").count == 3)
    }

    @Test func aKeyedRequestIsSentAgainUnlessItWasAnswered() async throws {
        let (world, client) = try await world()
        await world.backend.plan(.fail(RetryTests.offline), at: "/orders")
        _ = try await client.data(for: APIRequest(.post, "/orders", body: .bytes([1])))
        let copies = await world.backend.copies(of: "/orders")
        let keys = copies.compactMap { $0.fields.first { $0.name == "Idempotency-Key" }?.value }
        #expect(copies.count == 2 && keys.count == 2 && keys[0] == keys[1])
        // The server would repeat this answer for this key.
        await world.backend.plan(.answer(503), at: "/items")
        #expect(try await client.data(for: APIRequest(.post, "/items", body: .bytes([1]))).1.status == 503)
        #expect(await world.backend.copies(of: "/items").count == 1)
    }

    @Test(
        "a keyed request is sent again only as long as the server knows its key",
        arguments: [(nil, 600), ("1200", 1_200), ("10", 600), ("90000", 600), ("x", 600)]
            as [(String?, Int64)])
    func aKeyedRequestIsSentAgainWhileItsKeyIsKnown(told: String?, seconds: Int64) async throws {
        let (world, client) = try await world()
        if let told {
            let field = HeaderField("Idempotency-Keys-Kept", value: told)
            await world.backend.plan(.answer(200, [field]), at: "/told")
            _ = try await client.data(for: APIRequest(.post, "/told", body: .bytes([1])))
        }
        func lost(after seconds: Int64) -> FakeBackend.Reaction {
            .failLate(
                TransportError(.connectionLost("test"), fate: .outcomeUnknown), seconds: seconds, world.clock)
        }
        await world.backend.plan(lost(after: seconds - 1), at: "/orders")
        _ = try await client.data(for: APIRequest(.post, "/orders", body: .bytes([1])))
        #expect(await world.backend.copies(of: "/orders").count == 2)
        await world.backend.plan(lost(after: seconds), at: "/items")
        await #expect {
            try await client.data(for: APIRequest(.post, "/items", body: .bytes([1])))
        } throws: { error in
            guard case .transport(let failure) = error as? CountersignError else { return false }
            return failure.cause == .keyExpired && failure.fate == .outcomeUnknown
        }
        #expect(await world.backend.copies(of: "/items").count == 1)
        // What did not arrive is not sent again, but for the first time.
        await world.backend.plan(
            .failLate(RetryTests.offline, seconds: seconds, world.clock), at: "/late")
        _ = try await client.data(for: APIRequest(.post, "/late", body: .bytes([1])))
        #expect(await world.backend.copies(of: "/late").count == 2)
    }

    @Test(
        "a clock that stands still or is set back prolongs no key",
        arguments: [
            (599, 599, false), (600, 0, true), (0, 600, true), (-86_400, 600, true), (-86_400, 599, false),
        ] as [(Int64, Int64, Bool)])
    func eitherClockEndsAKey(wall: Int64, monotonic: Int64, isOver: Bool) {
        func clock(wall: Int64, monotonic: Int64) -> DeviceClock {
            DeviceClock(wall: { 1_800_000_000 + wall }, monotonic: { UInt64(5 + monotonic) * 1_000_000_000 })
        }
        let sent = SendingTime(clock(wall: 0, monotonic: 0))
        #expect(sent.isOver(after: 600, by: clock(wall: wall, monotonic: monotonic)) == isOver)
    }

    @Test("only a response over TLS states how long keys are kept")
    func plaintextProlongsNoKey() {
        let lifetime = KeyLifetime()
        let field = HeaderField("Idempotency-Keys-Kept", value: "1200")
        lifetime.note([field], over: .plaintext)
        #expect(lifetime.seconds == 600)
        lifetime.note([field], over: .tls)
        #expect(lifetime.seconds == 1_200)
    }

    /// Takes the key away, so that the server cannot recognize a copy.
    private struct KeyRemoving: APIInterceptor {
        func intercept(_ request: APIRequest, next: InterceptorChain) async throws -> APIAnswer {
            var request = request
            request.idempotencyKey = nil
            return try await next(request)
        }
    }

    @Test func anUnsafeRequestWithoutAKeyIsNotSentAgain() async throws {
        let world = try await World {
            $0.retry = RetryTests.quick
            $0.interceptors = [KeyRemoving()]
        }
        let client = try await world.signedIn()
        for method in [APIMethod.post, .put, .patch, .delete] {
            let path = "/orders/\(method)"
            await world.backend.plan(.fail(RetryTests.offline), at: path)
            await #expect {
                try await client.data(for: APIRequest(method, path, body: .bytes([1])))
            } throws: { error in
                (error as? CountersignError)?.isOffline == true
            }
            #expect(await world.backend.copies(of: path).count == 1)
        }
        await world.backend.plan(.fail(RetryTests.offline), at: "/orders/1")
        #expect(try await client.data(for: APIRequest("/orders/1")).1.status == 200)
    }

    @Test func aKeyedRequestOfTheAppIsNotSentAgainOnceItMayHaveArrived() async throws {
        let (world, client) = try await world()
        var request = APIRequest(.post, "/orders", body: .bytes([1]))
        request.caller = .app
        // Another network, and so another address, which a key without a session is remembered with.
        let isLost = TransportError(.connectionLost("test"), fate: .outcomeUnknown)
        await world.backend.plan(.fail(isLost), at: "/orders")
        await #expect(throws: CountersignError.self) { try await client.data(for: request) }
        #expect(await world.backend.copies(of: "/orders").count == 1)
        request = APIRequest(.post, "/items", body: .bytes([1]))
        request.caller = .app
        await world.backend.plan(.fail(RetryTests.offline), at: "/items")
        _ = try? await client.data(for: request)
        #expect(await world.backend.copies(of: "/items").count == 2)
    }

    /// An app that reads "not sent" would make the same request anew, under another key.
    @Test func aLostCopyIsNotForgottenWhenLaterOnesAreNotSent() async throws {
        let (world, client) = try await world()
        let isLost = TransportError(.connectionLost("test"), fate: .outcomeUnknown)
        await world.backend.plan(.fail(isLost), at: "/orders")
        for _ in 0..<3 { await world.backend.plan(.fail(RetryTests.offline), at: "/orders") }
        await #expect {
            try await client.data(for: APIRequest(.post, "/orders", body: .bytes([1])))
        } throws: { error in
            guard case .transport(let failure) = error as? CountersignError else { return false }
            return failure.fate == .outcomeUnknown && (error as? CountersignError)?.isUnreachable == false
        }
        #expect(await world.backend.copies(of: "/orders").count == 4)
    }

    @Test func whatCannotBeMendedIsNotTried() async throws {
        let (world, client) = try await world()
        await world.backend.plan(
            .fail(TransportError(.malformedAnswer("test"), fate: .brokenOff)), at: "/orders")
        await #expect(throws: CountersignError.self) { try await client.data(for: APIRequest("/orders")) }
        #expect(await world.backend.copies(of: "/orders").count == 1)
        await world.backend.plan(.answer(404), at: "/items")
        #expect(try await client.data(for: APIRequest("/items")).1.status == 404)
        #expect(await world.backend.copies(of: "/items").count == 1)
    }

    @Test func aRefusalForNowIsAskedAgainAndAnyOtherIsNot() async throws {
        let (world, client) = try await world()
        await world.backend.plan(.refuse("unavailable"), at: "/orders")
        #expect(try await client.data(for: APIRequest("/orders")).1.status == 200)
        #expect(await world.backend.copies(of: "/orders").count == 2)
        await world.backend.plan(.refuse("busy"), at: "/items")
        await #expect(throws: CountersignError.self) { try await client.data(for: APIRequest("/items")) }
        #expect(await world.backend.copies(of: "/items").count == 1)
    }

    @Test func whatCanBeReadOnceOnlyAndARoundOfAPollAreNot() async throws {
        let (world, client) = try await world()
        let body = OnceBody(
            .bytes(1),
            pieces: AsyncStream<[UInt8]> {
                $0.yield([1]); $0.finish()
            })
        let digest = SHA256.digest([1].span)
        await world.backend.plan(.fail(RetryTests.offline), at: "/orders")
        let once = APIRequest(
            .post, "/orders", body: .once(body, sha256: digest.indices.map { digest[$0] }))
        await #expect(throws: CountersignError.self) { try await client.data(for: once) }
        #expect(await world.backend.copies(of: "/orders").count == 1)
        await world.backend.plan(.fail(RetryTests.offline), at: "/news")
        let events = client.events
        var rounds = client.poll(APIRequest("/news"), every: .milliseconds(1)).makeAsyncIterator()
        #expect(try await rounds.next()?.1.status == 200)
        // The next round is another call.
        let end = await first(of: events) { event in
            switch event {
            case .failed, .answered: true
            default: false
            }
        }
        guard case .failed? = end else {
            Issue.record("\(end.map { "\($0)" } ?? "no event")")
            return
        }
    }

    @Test func aServerThatAsksForALongWaitGetsNoOther() async throws {
        let (world, client) = try await world()
        await world.backend.plan(.answer(503, [HeaderField("Retry-After", value: "3")]), at: "/orders")
        #expect(try await client.data(for: APIRequest("/orders")).1.status == 503)
        #expect(await world.backend.copies(of: "/orders").count == 1)
        await world.backend.plan(.answer(503, [HeaderField("Retry-After", value: "0")]), at: "/items")
        #expect(try await client.data(for: APIRequest("/items")).1.status == 200)
    }

    @Test func byDefaultNothingIs() async throws {
        let (world, client) = try await world(CountersignOptions().retry)
        await world.backend.plan(.fail(RetryTests.offline), at: "/orders")
        await #expect(throws: CountersignError.self) { try await client.data(for: APIRequest("/orders")) }
        #expect(await world.backend.copies(of: "/orders").count == 1)
    }

    @Test func waitsDoubleAndAreBounded() {
        let policy = APIRetryPolicy(attempts: 6, firstDelay: .seconds(1), longestDelay: .seconds(5))
        let limits = (2...7).map { policy.delay(beforeAttempt: $0, askedFor: nil, random: .max) }
        for (limit, seconds) in zip(limits, [1, 2, 4, 5, 5]) {
            #expect(limit.map { $0 <= .seconds(seconds) && $0 > .milliseconds(seconds * 999) } == true)
        }
        #expect(limits.last == .some(nil))
        #expect(policy.delay(beforeAttempt: 2, askedFor: nil, random: 0) == .zero)
        #expect(policy.delay(beforeAttempt: 2, askedFor: 5, random: .max) == .seconds(5))
        #expect(policy.delay(beforeAttempt: 2, askedFor: 6, random: .max) == nil)
        #expect(APIRetryPolicy(attempts: 0).attempts == 1 && APIRetryPolicy(attempts: 99).attempts == 10)
        var wild = APIRetryPolicy.standard
        wild.attempts = .max
        #expect(wild.delay(beforeAttempt: 10, askedFor: nil, random: 1) != nil)
        #expect(wild.delay(beforeAttempt: 11, askedFor: nil, random: 1) == nil)
    }
}
