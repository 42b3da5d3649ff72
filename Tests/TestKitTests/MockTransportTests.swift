import CountersignMemory
import CountersignTransport
import CountersignTrust
import Testing
import Waiting

@testable import CountersignTestKit

@Suite struct MockTransportTests {
    private func request(_ body: RequestBody = .none) throws -> OutgoingRequest {
        OutgoingRequest(
            "POST", origin: Origin(.tls, host: try Trust.Host("api.example.com")), target: "/notes?a=1",
            body: body)
    }

    private func failure(_ transport: MockTransport, _ request: OutgoingRequest) async -> TransportError? {
        do {
            let response = try await transport.send(request)
            _ = try await response.body.collect(upTo: 1000)
            return nil
        } catch {
            return error
        }
    }

    @Test func stepsAreTakenInOrderAndThenTheClosureIsAsked() async throws {
        let transport = MockTransport([.answer(MockResponse(404)), .answer(MockResponse(text: "two"))]) {
            request in
            MockResponse(
                201, text: "\(request.method) \(request.url) \(request.value(of: "content-type") ?? "-")")
        }
        #expect(try await transport.send(request()).status == 404)
        #expect(try await transport.send(request()).body.collect(upTo: 10) == Array("two".utf8))
        var third = try request(.bytes([1, 2]))
        third.fields = [HeaderField("Content-Type", value: "text/plain")]
        let response = try await transport.send(third)
        let expected = "POST https://api.example.com/notes?a=1 text/plain"
        #expect(try await response.body.collect(upTo: 100) == Array(expected.utf8))
        #expect(transport.seen.map(\.body) == [[], [], [1, 2]])
        #expect(transport.stepsLeft == 0)
    }

    /// A test whose script is too short fails, rather than be answered with something.
    @Test func aRequestWithoutAStepFails() async throws {
        let transport = MockTransport([])
        let error = try await failure(transport, request())
        #expect(error?.fate == .notSent && transport.seen.isEmpty && transport.attempts == 1)
    }

    @Test func whatWasNotSentIsNotReadAndNotSeen() async throws {
        let once = OnceBody(.bytes(1), pieces: Pieces([[7]]))
        let transport = MockTransport([
            .fail(TransportError(.offline, fate: .notSent)), .answer(MockResponse()),
        ])
        #expect(
            try await failure(transport, request(.once(once))) == TransportError(.offline, fate: .notSent))
        #expect(!once.isUsedUp && transport.seen.isEmpty)
        #expect(try await failure(transport, request(.once(once))) == nil)
        #expect(once.isUsedUp && transport.seen.map(\.body) == [[7]])
        transport.append(.answer(MockResponse()))
        #expect(try await failure(transport, request(.once(once)))?.cause == .bodyUsedUp)
    }

    @Test func whatIsLostOnTheWayBackWasSeen() async throws {
        let lost = TransportError(.connectionLost("test"), fate: .outcomeUnknown)
        let transport = MockTransport([.fail(lost), .answer(MockResponse(text: "half").breakingOff())])
        #expect(try await failure(transport, request()) == lost)
        #expect(try await failure(transport, request())?.fate == .brokenOff)
        #expect(transport.seen.count == 2)
    }

    @Test func aStreamOfAnotherLengthIsRefused() async throws {
        let body = ReplayableBody(.bytes(3)) { Pieces([[1], [2]]) }
        let transport = MockTransport([.answer(MockResponse())])
        guard case .body = try await failure(transport, request(.replayable(body)))?.cause else {
            Issue.record("taken")
            return
        }
    }

    /// What the real transport does not send, a test must not get through either.
    @Test func aRequestThatCannotBeSentIsRefused() async throws {
        var request = try request()
        request.fields = [HeaderField("X", value: "a\r\nb")]
        let transport = MockTransport([.answer(MockResponse())])
        guard case .malformedRequest = await failure(transport, request)?.cause else {
            Issue.record("taken")
            return
        }
        #expect(transport.stepsLeft == 1)
    }

    @Test func anAnswerWaitsForTheClock() async throws {
        let clock = ManualClock()
        let transport = MockTransport([.answer(MockResponse().after(.seconds(30)))], clock: clock)
        let request = try request()
        async let status = transport.send(request).status
        await until("the exchange waits") { clock.sleepers > 0 }
        clock.advance(by: .seconds(29))
        #expect(clock.sleepers == 1)
        clock.advance(by: .seconds(1))
        #expect(try await status == 200)
    }

    @Test func cancellingEndsTheWait() async throws {
        let clock = ManualClock()
        let transport = MockTransport([.answer(MockResponse().after(.seconds(30)))], clock: clock)
        let request = try request()
        let task = Task { await failure(transport, request) }
        await until("the exchange waits") { clock.sleepers > 0 }
        task.cancel()
        #expect(await task.value == TransportError(.cancelled, fate: .outcomeUnknown))
    }

    @Test func progressIsTold() async throws {
        let far = Locked<[TransferProgress]>([])
        var answer = MockResponse()
        answer.pieces = [[1], [2, 3]]
        let transport = MockTransport([.answer(answer)])
        let response = try await transport.send(request(.bytes([9]))) { now in far.with { $0.append(now) } }
        #expect(try await response.body.collect(upTo: 10) == [1, 2, 3])
        #expect(far.with { $0.map(\.received) } == [0, 1, 3])
        #expect(far.with { $0.allSatisfy { $0.sent == 1 } })
    }
}

/// Pieces, one after the other.
struct Pieces: AsyncSequence, Sendable {
    let pieces: [[UInt8]]

    init(_ pieces: [[UInt8]]) { self.pieces = pieces }

    func makeAsyncIterator() -> Iterator { Iterator(rest: pieces[...]) }

    struct Iterator: AsyncIteratorProtocol {
        var rest: ArraySlice<[UInt8]>
        mutating func next() async -> [UInt8]? { rest.popFirst() }
    }
}
