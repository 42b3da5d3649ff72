import Testing

@testable import Countersign

/// The values that each of several subscribers receives.
@Suite(.timeLimit(.minutes(15))) struct BroadcastTests {
    @Test func eachHearsTheCurrentValueFirst() async {
        let broadcast = Broadcast<Int>(.latest, latest: 1)
        let early = broadcast.stream()
        broadcast.tell(2)
        broadcast.tell(3)
        let late = broadcast.stream()
        broadcast.finish()
        // A slow subscriber gets the last value, and misses those in between.
        #expect(await early.reduce(into: []) { $0.append($1) } == [3])
        #expect(await late.reduce(into: []) { $0.append($1) } == [3])
        #expect(await broadcast.stream().reduce(into: []) { $0.append($1) } == [])
    }

    @Test func oneWhoKeepsUpHearsAll() async {
        let broadcast = Broadcast<Int>(.latest, latest: 0)
        var heard: [Int] = []
        for await value in broadcast.stream() {
            heard.append(value)
            if value == 5 { break }
            broadcast.tell(value + 1)
        }
        #expect(heard == [0, 1, 2, 3, 4, 5])
    }

    @Test func unheardEventsAreNotComputed() async {
        let broadcast = Broadcast<Int>(.recent(3))
        var computed = 0
        func value() -> Int {
            computed += 1
            return computed
        }
        broadcast.tell(value())
        #expect(computed == 0)
        let stream = broadcast.stream()
        broadcast.tell(value())
        broadcast.finish()
        #expect(await stream.reduce(into: []) { $0.append($1) } == [1])
    }

    @Test func ofEventsTheOldestGo() async {
        let broadcast = Broadcast<Int>(.recent(3))
        broadcast.tell(0)
        let stream = broadcast.stream()
        for value in 1...5 { broadcast.tell(value) }
        broadcast.finish()
        #expect(await stream.reduce(into: []) { $0.append($1) } == [3, 4, 5])
    }

    @Test func manyTellersReachAllListenersInOneOrder() async {
        let broadcast = Broadcast<Int>(.recent(1_000))
        let streams = [broadcast.stream(), broadcast.stream()]
        await withTaskGroup(of: Void.self) { group in
            for value in 0..<200 { group.addTask { broadcast.tell(value) } }
        }
        broadcast.finish()
        let first = await streams[0].reduce(into: []) { $0.append($1) }
        let second = await streams[1].reduce(into: []) { $0.append($1) }
        #expect(first == second && first.count == 200)
    }
}
