import Glibc
import Testing

@testable import CountersignHTTP
import CountersignWire

/// Requests that wait for the upstream take turns by caller, and no caller fills the queue against the
/// others.
@Suite struct FairQueueTests {
    private func drained(_ queue: FairQueue<String, String>) -> [String] {
        var queue = queue
        var popped: [String] = []
        while let element = queue.popFirst() { popped.append(element) }
        #expect(queue.isEmpty)
        return popped
    }

    @Test func callersTakeTurns() {
        var queue = FairQueue<String, String>(limit: 10)
        for element in ["a1", "a2", "a3", "b1", "c1", "b2"] {
            #expect(queue.append(element, of: String(element.prefix(1))) == nil)
        }
        #expect(drained(queue) == ["a1", "b1", "c1", "a2", "b2", "a3"])
    }

    @Test func whoHoldsLeastComesFirst() {
        var queue = FairQueue<String, String>(limit: 10)
        for element in ["a1", "b1", "c1", "b2"] { _ = queue.append(element, of: String(element.prefix(1))) }
        let held = ["a": 5, "b": 2, "c": 2]
        let order = (0..<4).compactMap { _ in queue.popFirst { held[$0, default: 0] } }
        #expect(order == ["b1", "c1", "b2", "a1"])
        #expect(queue.isEmpty)
    }

    @Test func aFullQueueIsSharedAndNotFirstCome() {
        var queue = FairQueue<String, String>(limit: 4)
        for element in ["a1", "a2", "a3", "a4"] { #expect(queue.append(element, of: "a") == nil) }
        #expect(queue.append("a5", of: "a") == "a5")
        #expect(queue.append("b1", of: "b") == "a4")
        #expect(queue.append("b2", of: "b") == "a3")
        // Now both have the same: neither displaces the other.
        #expect(queue.append("b3", of: "b") == "b3")
        #expect(queue.append("c1", of: "c") != nil)
        #expect(queue.count == 4)
    }

    @Test func whatIsOverLeavesFromTheFront() {
        var queue = FairQueue<String, Int>(limit: 100)
        for number in 0..<60 { _ = queue.append(number, of: "\(number % 3)") }
        #expect(queue.removeFirst { $0 < 30 }.sorted() == Array(0..<30))
        #expect(queue.count == 30)
        #expect(queue.removeFirst { _ in true }.count == 30)
        #expect(queue.isEmpty && queue.popFirst() == nil)
    }

    @Test func holdsNothingWithoutRoom() {
        var queue = FairQueue<String, Int>(limit: 0)
        #expect(queue.append(1, of: "a") == 1)
    }

    @Test func theLimitsOfTheLoopsAddUp() {
        for (whole, loops) in [(1_024, 3), (2, 2), (7, 4), (65_536, 256)] {
            let limits = UpstreamLimits(connections: whole, waiting: whole)
            let parts = (0..<loops).map { limits.part($0, of: loops) }
            #expect(
                parts.map(\.connections).reduce(0, +) == whole && parts.map(\.waiting).reduce(0, +) == whole)
            #expect(parts.allSatisfy { $0.connections >= 1 })
        }
    }
}

/// What is held counts to the caller and to the networks around it, of which there may be more shares.
@Suite struct UpstreamPartyTests {
    @Test func networksCountWhatTheirAddressesHold() throws {
        let table = UpstreamCallerTable()
        func party(_ text: String) throws -> UpstreamCallerUsage {
            table.acquire(.address(try #require(NetworkAddress(text: text)).subscriber))
        }
        let homes = try ["2001:db8:0:1::1", "2001:db8:0:2::1", "2001:db8:0:3::1"].map(party)
        for home in homes { home.count(2) }
        // Two for each, six for the /56, which has two shares.
        #expect(homes[0].load == 3 && homes[0].exceeds(2) && !homes[0].exceeds(3))
        let elsewhere = try party("2001:db8:0:100::1")
        #expect(elsewhere.load == 1 && !elsewhere.exceeds(2))
        homes[1].countEnding(2)
        #expect(!homes[0].exceeds(2))
        #expect(try party("192.0.2.1").load == 0)
    }

    @Test func aPartyIsOneObjectForAsLongAsItIsUsed() {
        let table = UpstreamCallerTable()
        let party = table.acquire(.account(7))
        #expect(table.acquire(.account(7)) === party)
        party.release()
        #expect(table.acquire(.account(7)) === party)
        party.release()
        party.release()
        #expect(table.acquire(.account(7)) !== party)
    }
}

/// Addresses that fail are skipped for a while that grows, and one that is the last resort is always tried.
@Suite struct AddressBookTests {
    private let addresses = (1...3).map { try? SocketAddress.resolve(host: "127.0.0.\($0)", port: 80)[0] }
        .compactMap(
            \.self)

    private func book() -> UpstreamAddressList {
        var book = UpstreamAddressList()
        book.replace(with: addresses)
        return book
    }

    @Test func newConnectionsGoInTurn() {
        var book = book()
        let first = (0..<6).map { _ in book.candidates(at: 0)[0].description }
        #expect(Set(first.prefix(3)).count == 3 && first.prefix(3) == first.suffix(3))
        #expect(book.candidates(at: 0).count == 3)
    }

    @Test func aFailureIsSkippedAndTriedAgainOnce() {
        var book = book()
        book.didFail(addresses[1], at: 100)
        for _ in 0..<6 { #expect(!book.candidates(at: 100).contains(addresses[1])) }
        // After a second one connection tries it; others go on skipping it until that is decided.
        #expect((0..<6).count { _ in book.candidates(at: 101).contains(addresses[1]) } == 1)
        book.didConnect(to: addresses[1])
        #expect((0..<6).allSatisfy { _ in book.candidates(at: 101).contains(addresses[1]) })
    }

    @Test func thePauseGrowsAndIsBounded() {
        var book = book()
        var now: Int64 = 0
        var pauses: [Int64] = []
        for _ in 0..<9 {
            book.didFail(addresses[0], at: now)
            let failed = now
            while !book.candidates(at: now).contains(addresses[0]) { now += 1 }
            pauses.append(now - failed)
        }
        #expect(pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60])
    }

    @Test func failuresOfOneMomentAreOne() {
        var book = book()
        for _ in 0..<50 { book.didFail(addresses[0], at: 10) }
        #expect((0..<3).contains { _ in book.candidates(at: 11).contains(addresses[0]) })
    }

    @Test func ofDeadOnesTheLeastRecentFailureIsTried() {
        var book = book()
        for (address, time) in zip(addresses, [12, 10, 11]) { book.didFail(address, at: Int64(time)) }
        #expect(book.candidates(at: 12).first == addresses[1])
        var single = UpstreamAddressList()
        single.replace(with: [addresses[0]])
        for time in 0..<20 {
            single.didFail(addresses[0], at: Int64(time))
            #expect(single.candidates(at: Int64(time)) == [addresses[0]])
        }
    }

    @Test func theResolverKeepsWhatIsKnown() {
        var book = book()
        book.didFail(addresses[0], at: 10)
        book.replace(with: Array(addresses.prefix(2)))
        #expect(book.candidates(at: 10) == [addresses[1]])
        book.replace(with: [])
        #expect(book.candidates(at: 10).isEmpty)
    }
}

/// What a first attempt to send says about what the peer can have read.
@Suite struct FirstWriteTests {
    @Test func tellsNothingSentFromFailed() throws {
        var pair: [Int32] = [0, 0]
        #expect(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue) | socketFlags, 0, &pair) == 0)
        let stream = Stream(descriptor: pair[0], loop: try EventLoop())
        defer { stream.close() }
        let buffer = Buffer()
        buffer.append("GET / HTTP/1.1\r\n\r\n")
        #expect(stream.isQuiet())
        guard case .begun = stream.writeAtOnce(buffer) else {
            Issue.record("the socket took nothing")
            return
        }
        #expect(buffer.isEmpty)
        buffer.append("GET / HTTP/1.1\r\n\r\n")
        close(pair[1])
        #expect(!stream.isQuiet())
        guard case .nothingSent(.closed) = stream.writeAtOnce(buffer) else {
            Issue.record("the peer was gone before the first byte")
            return
        }
    }

    @Test func aFullSocketIsNoFailure() throws {
        var pair: [Int32] = [0, 0]
        #expect(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue) | socketFlags, 0, &pair) == 0)
        let stream = Stream(descriptor: pair[0], loop: try EventLoop())
        defer { stream.close() }
        let buffer = Buffer()
        var rounds = 0
        repeat {
            buffer.append([UInt8](repeating: 0, count: buffer.space))
            guard case .begun = stream.writeAtOnce(buffer) else {
                Issue.record("a full socket is not a dead one")
                return
            }
            rounds += 1
        } while buffer.isEmpty && rounds < 1_000
        #expect(!buffer.isEmpty)
        close(pair[1])
    }
}

/// Only what the present destination does shows that it is there.
@Suite struct UpstreamGenerationTests {
    private func replaced() throws -> UpstreamTarget {
        let target = UpstreamTarget(host: "127.0.0.1", port: 1, tls: nil)
        try target.resolve()
        target.replace(by: try UpstreamTarget.Replacement(host: "127.0.0.1", port: 2, tls: nil))
        return target
    }

    @Test func aConnectionToTheFormerDestinationDoesNotCount() throws {
        let target = try replaced()
        let address = try #require(target.route(at: 0).addresses.first)
        target.didConnect(to: address, at: 5, from: 0)
        target.didAnswer(at: 6, from: 0)
        #expect(target.lastSuccess == nil)
        target.didConnect(to: address, at: 7, from: 1)
        #expect(target.lastSuccess == 7)
        target.didAnswer(at: 8, from: 1)
        #expect(target.lastSuccess == 8)
    }

    /// The pool learns of the replacement by its tick, or by ``UpstreamPool/replace(limits:deadlines:)``.
    @Test("nor does a response that was in flight", arguments: [true, false])
    func inFlight(_ isReloaded: Bool) throws {
        let target = UpstreamTarget(host: "127.0.0.1", port: 1, tls: nil)
        try target.resolve()
        let loop = try EventLoop()
        let pool = UpstreamPool(target: target, loop: loop, deadlines: Deadlines())
        try loop.start(name: "test")
        defer {
            loop.stop()
            loop.join()
        }
        // In one turn of the loop each: its own tick comes between them or not.
        loop.performAndWait {
            pool.didAnswer(from: 0, at: 1)
            pool.tick()
        }
        #expect(target.lastSuccess == 1, "what the destination answers is told")
        let replacement = try UpstreamTarget.Replacement(host: "127.0.0.1", port: 2, tls: nil)
        loop.performAndWait {
            pool.didAnswer(from: 0, at: 2)
            target.replace(by: replacement)
            if isReloaded {
                pool.replace(limits: UpstreamLimits(), deadlines: Deadlines())
            } else {
                pool.tick()
            }
            pool.didAnswer(from: 0, at: 3)
            pool.tick()
        }
        #expect(target.lastSuccess == nil)
        loop.performAndWait {
            pool.didAnswer(from: 1, at: 4)
            pool.tick()
        }
        #expect(target.lastSuccess == 4)
    }
}
