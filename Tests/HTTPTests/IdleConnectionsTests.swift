// Proves which idle connection the pool takes, and what it believes of the poller's silence.
import CountersignMemory
import Dispatch
import Glibc
import Testing

@testable import CountersignHTTP

@Suite struct IdleConnectionsTests {
    private let loop: EventLoop
    private let connections: [UpstreamConnection]

    init() throws {
        let loop = try EventLoop()
        self.loop = loop
        connections = try (0..<4).map { _ in
            var pair: [Int32] = [0, 0]
            try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue) | socketFlags, 0, &pair) == 0)
            close(pair[1])
            return UpstreamConnection(stream: Stream(descriptor: pair[0], loop: loop), generation: 0)
        }
    }

    private func number(of connection: UpstreamConnection?) -> Int? {
        connections.firstIndex { $0.stream === connection?.stream }
    }

    @Test func thoseOfEarlierTurnsComeFirst() {
        var idle = IdleConnections()
        for number in 0..<2 { idle.append(connections[number], since: 0, in: 1) }
        for number in 2..<4 { idle.append(connections[number], since: 0, in: 2) }
        let taken = (0..<4).map { _ in idle.takeLast(in: 2) }
        #expect(taken.map { number(of: $0?.entry.connection) } == [1, 0, 3, 2])
        #expect(taken.map { $0?.watch } == [.polled, .polled, .unpolled, .unpolled])
        #expect(idle.takeLast(in: 2) == nil && idle.count == 0)
    }

    @Test func aTurnMakesAllOfThemPolled() {
        var idle = IdleConnections()
        for number in 0..<3 { idle.append(connections[number], since: 0, in: 1) }
        #expect(idle.takeLast(in: 1)?.watch == .unpolled)
        #expect(idle.takeLast(in: 2)?.watch == .polled)
        #expect(number(of: idle.takeLast(in: 2)?.entry.connection) == 0)
    }

    @Test func afterARemovalNoneCountsAsPolled() {
        var idle = IdleConnections()
        for number in 0..<4 { idle.append(connections[number], since: Int64(number), in: 1) }
        #expect(idle.takeLast(in: 2)?.watch == .polled)
        idle.removeAll { $0.since == 0 }
        #expect(idle.count == 2)
        #expect(idle.takeLast(in: 2)?.watch == .unpolled)
        #expect(idle.takeLast(in: 3)?.watch == .polled)
    }
}

@Suite struct IdleCheckTests {
    @Test(
        "which request goes out on the poller's word, by the milliseconds for which its connection was idle",
        arguments: [
            (IdleCheck.socket, []), (.lastPoll, [0, 1_000, 1_001, 54_000]), (.lastPollIfRecent, [0, 1_000]),
        ])
    func trust(_ check: IdleCheck, trustedAges: [Int64]) throws {
        let loop = try EventLoop()
        var pair: [Int32] = [0, 0]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair) == 0)
        defer { close(pair[1]) }
        let stream = Stream(descriptor: pair[0], loop: loop)
        defer { stream.close() }
        let connection = UpstreamConnection(stream: stream, generation: 0)
        let entry = IdleConnections.Entry(connection: connection, since: 100)
        let trusted = [0, 1_000, 1_001, 54_000].filter {
            check.trustsPoll(of: entry, at: 100 + $0 * 1_000_000)
        }
        #expect(trusted == trustedAges)
    }
}

/// What a loop believes of its polls, with libevent itself.
@Suite struct PollRecordTests {
    /// Reads one byte when the loop calls it, and notes what the loop then says of its poll.
    private final class Reader: StreamWaiter, @unchecked Sendable {
        struct Sight: Equatable, Sendable {
            var turn: UInt64
            var hasReportedAll: Bool
        }

        let sights: Locked<[Sight]>
        let done: DispatchSemaphore

        init(sights: Locked<[Sight]>, done: DispatchSemaphore) {
            self.sights = sights
            self.done = done
        }

        func didWake(stream: CountersignHTTP.Stream, by wake: CountersignHTTP.Stream.Wake) {
            guard wake == .ready else { return }
            let buffer = Buffer()
            guard case .done = stream.readIfReady(into: buffer) else { return }
            let sight = Sight(turn: stream.loop.turn, hasReportedAll: stream.loop.hasReportedAllInput)
            let count = sights.with { sights in
                sights.append(sight)
                return sights.count
            }
            if count == PollRecordTests.descriptors { done.signal() }
        }
    }

    private static let descriptors = 100

    @Test func aFullPollIsNotBelieved() throws {
        let loop = try EventLoop()
        let (sights, done) = (Locked<[Reader.Sight]>([]), DispatchSemaphore(value: 0))
        let reader = Reader(sights: sights, done: done)
        var peers: [Int32] = []
        var streams: [CountersignHTTP.Stream] = []
        for _ in 0..<PollRecordTests.descriptors {
            var pair: [Int32] = [0, 0]
            try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue) | socketFlags, 0, &pair) == 0)
            let stream = CountersignHTTP.Stream(descriptor: pair[0], loop: loop)
            #expect(stream.awaitInput(for: reader, called: .afterPoll))
            #expect(write(pair[1], "x", 1) == 1)
            streams.append(stream)
            peers.append(pair[1])
        }
        defer {
            for stream in streams { stream.close() }
            for peer in peers { close(peer) }
        }
        try loop.start(name: "polls")
        #expect(done.wait(timeout: .now() + 10) == .success)
        loop.stop()
        loop.join()
        // Its first poll has room for 32 descriptors, its second for 64.
        let polls = sights.with { sights in
            Dictionary(grouping: sights, by: \.turn).sorted { $0.key < $1.key }.map(\.value)
        }
        #expect(polls.map(\.count) == [32, 64, 4])
        #expect(polls.map { $0.map(\.hasReportedAll) }.map(Set.init) == [[false], [false], [true]])
    }
}
