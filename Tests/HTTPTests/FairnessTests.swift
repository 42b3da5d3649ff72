import CountersignWire
import Glibc
import Testing
import Waiting

@testable import CountersignHTTP

/// A loop's time is divided by address; idle connections give way in their order, across loops; bodies,
/// connections and requests count to whom they should; a slow reader is told from a silent source.
@Suite struct FairnessTests {
    private func address(_ text: String) throws -> NetworkAddress { try #require(NetworkAddress(text: text)) }

    /// `#expect` takes no call that changes a variable.
    private func check(_ isTrue: Bool, sourceLocation: SourceLocation = #_sourceLocation) {
        #expect(isTrue, sourceLocation: sourceLocation)
    }

    // MARK: Turns

    @Test func aShareIsUsedUpWithinATurnAndFreshInTheNext() throws {
        let share = LoopTimeScheduler().acquire(try address("192.0.2.1"))
        #expect(!share.isUsedUp(in: 1, more: LoopTimeScheduler.firstAllowance - 1))
        #expect(share.isUsedUp(in: 1, more: LoopTimeScheduler.firstAllowance))
        share.spend(LoopTimeScheduler.firstAllowance, in: 1)
        #expect(share.isUsedUp(in: 1, more: 0))
        #expect(!share.isUsedUp(in: 2, more: 0))
    }

    @Test func connectionsOfAnAddressHaveOneShare() throws {
        let schedule = LoopTimeScheduler()
        let first = schedule.acquire(try address("192.0.2.1"))
        #expect(schedule.acquire(try address("192.0.2.1")) === first)
        #expect(schedule.acquire(try address("192.0.2.2")) !== first)
        schedule.release(first)
        #expect(schedule.acquire(try address("192.0.2.1")) === first)
    }

    /// Each waiting connection notes its name as it goes on.
    @Test func waitingConnectionsGoOnAddressByAddress() async throws {
        let schedule = LoopTimeScheduler()
        let hog = schedule.acquire(try address("192.0.2.1"))
        let other = schedule.acquire(try address("192.0.2.2"))
        let order = Locked<[String]>([])
        let box = ScheduleBox(schedule: schedule, shares: [hog, other])
        await withTaskGroup(of: Void.self) { group in
            let names = ["a1", "a2", "a3", "a4", "b1", "b2"]
            for name in names {
                let index = name.hasPrefix("a") ? 0 : 1
                let before = box.count.with { $0 }
                group.addTask { [box] in
                    await withUnsafeContinuation { continuation in
                        box.append(continuation, share: index, name: name)
                    }
                }
                await until("its place in the line") { box.count.with { $0 } > before }
            }
            while let name = box.resumeNext() { order.with { $0.append(name) } }
        }
        #expect(order.with { $0 } == ["a1", "b1", "a2", "b2", "a3", "a4"])
        #expect(!schedule.hasWaiting)
    }

    // MARK: Giving way

    @Test func thoseThatProvedLessAndHaveMostGiveWay() throws {
        var limits = Limits()
        limits.connections = 8
        let registry = ConnectionRegistry()
        let engines = try (0..<2).map { _ in
            try Engine(limits: limits, registry: registry, handler: ProvingHandler())
        }
        defer { for engine in engines { engine.stop() } }
        func connect(_ engine: Engine, from address: String, proving proof: String) throws -> RawClient {
            let client = try RawClient(port: engine.port, from: address)
            client.send("GET /\(proof) HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(client.receive(until: "proved").hasPrefix("HTTP/1.1 200 OK"))
            return client
        }
        // Two with a session and two with a release on the first loop, four strangers of two addresses on the
        // second.
        let sessions = try (0..<2).map { _ in try connect(engines[0], from: "127.0.0.5", proving: "session") }
        let releases = try (0..<2).map { _ in try connect(engines[0], from: "127.0.0.6", proving: "release") }
        let many = try (0..<3).map { _ in try connect(engines[1], from: "127.0.0.7", proving: "nothing") }
        let one = try connect(engines[1], from: "127.0.0.8", proving: "nothing")
        #expect(registry.current == 8)

        let next = try connect(engines[0], from: "127.0.0.9", proving: "session")
        #expect(many[0].receive(1) == "", "the oldest of the address with most connections")
        #expect(registry.counters.count(of: .evictedIdle) >= 1)
        for client in sessions + releases + [one, next] {
            client.send("GET /release HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(client.receive(until: "proved").hasPrefix("HTTP/1.1 200 OK"))
        }
        for client in sessions + releases + many + [one, next] { client.close() }
    }

    // MARK: Whom it counts to

    private func usage(
        of text: String, in registry: ConnectionRegistry, limits: Limits
    ) throws -> ConnectionBudget {
        let record = registry.addresses.acquire(try address(text), now: 0)
        #expect(record.usage.reserve(1, of: .connections, limit: limits.effectiveAddressConnections))
        return ConnectionBudget(registry: registry, limits: limits, peer: record, isExempt: false)
    }

    @Test func aSessionsConnectionCountsToItsAccount() throws {
        let registry = ConnectionRegistry()
        var limits = Limits()
        limits.accountConnections = 2
        let connections = try (0..<3).map { _ in try usage(of: "192.0.2.1", in: registry, limits: limits) }
        let record = connections[0].source
        var kept: [Bool] = []
        for index in connections.indices {
            connections[index].beginExchange()
            kept.append(connections[index].recordProof(.session(account: 7)))
        }
        #expect(kept == [true, true, false], "the third is one more than the account may have")
        #expect(record.usage.value(of: .connections) == 1)
        #expect(record.usage.value(of: .requests) == 0)
        let allowed = connections.indices.map { connections[$0].endExchange() }
        #expect(allowed == [true, true, true])
        // A request that proves less counts the connection to its address again.
        connections[0].beginExchange()
        #expect(record.usage.value(of: .requests) == 1)
        check(connections[0].endExchange())
        #expect(record.usage.value(of: .connections) == 2)
        for index in connections.indices { connections[index].end() }
        #expect(record.usage.value(of: .connections) == 0)
        #expect(record.usage.value(of: .requests) == 0)
    }

    @Test func theWayBackToAFullAddressEndsTheConnection() throws {
        let registry = ConnectionRegistry()
        var limits = Limits()
        limits.addressConnections = 1
        let first = try usage(of: "192.0.2.1", in: registry, limits: limits)
        first.beginExchange()
        check(first.recordProof(.session(account: 7)))
        check(first.endExchange())
        let second = try usage(of: "192.0.2.1", in: registry, limits: limits)
        first.beginExchange()
        check(!first.endExchange())
        first.end()
        second.end()
        #expect(second.source.usage.value(of: .connections) == 0)
    }

    @Test func anExchangeCountsToWhomAProxyNames() throws {
        let registry = ConnectionRegistry()
        var limits = Limits()
        limits.addressRequests = 1
        let proxy = registry.addresses.acquire(try address("10.0.0.1"), now: 0)
        let connections = (0..<2).map { _ in
            ConnectionBudget(registry: registry, limits: limits, peer: proxy, isExempt: true)
        }
        for index in connections.indices {
            connections[index].beginExchange()
            connections[index].attribute(to: try address("192.0.2.9"), now: 0)
        }
        #expect(proxy.usage.value(of: .requests) == 0)
        #expect(connections[0].source.address.text == "192.0.2.9")
        #expect(connections[0].source === connections[1].source)
        let refusal = #expect(throws: Refusal.self) { try connections[0].checkOverload() }
        #expect(refusal?.code == .unavailable)
        check(connections[1].recordProof(.session(account: 1)))
        #expect(!connections[0].isOverloaded)
        let source = connections[0].source
        for index in connections.indices { connections[index].end() }
        #expect(source.usage.value(of: .requests) == 0)
        #expect(proxy.usage.value(of: .connections) == 0)
    }

    @Test func heldBodiesHaveBudgetsByWhatIsProved() throws {
        let registry = ConnectionRegistry()
        var limits = Limits()
        (limits.addressUnprovenBytes, limits.unprovenBytes) = (10, 15)
        (limits.addressHeldBytes, limits.accountHeldBytes, limits.heldBytes) = (30, 40, 100)
        func hold(
            _ counts: [Int], from address: String, proving proof: CallerProof?
        ) throws -> (ConnectionBudget, [Bool]) {
            let usage = try usage(of: address, in: registry, limits: limits)
            usage.beginExchange()
            if let proof { check(usage.recordProof(proof)) }
            let held = counts.map { usage.hold($0) }
            return (usage, held)
        }
        let (stranger, first) = try hold([8, 3, 2], from: "192.0.2.1", proving: nil)
        #expect(first == [true, false, true])
        let (another, second) = try hold([6, 5], from: "192.0.2.2", proving: nil)
        #expect(second == [false, true], "all strangers together")
        let (release, third) = try hold([25, 10, 5], from: "192.0.2.1", proving: .release)
        #expect(third == [true, false, true])
        let (more, fourth) = try hold([25, 20], from: "192.0.2.3", proving: .release)
        #expect(fourth == [false, true], "callers without a session have half")
        let (session, fifth) = try hold([40, 1], from: "192.0.2.1", proving: .session(account: 1))
        #expect(fifth == [true, false])
        #expect(registry.heldBytes == 15 + 50 + 40)
        // What was held before the signature was verified counts to the caller from then on.
        check(stranger.recordProof(.session(account: 2)))
        #expect(registry.heldBytes == 15 + 50 + 40)
        let (newcomer, sixth) = try hold([10], from: "192.0.2.4", proving: nil)
        #expect(sixth == [true])
        for index in 0..<6 {
            switch index {
            case 0: stranger.end()
            case 1: another.end()
            case 2: release.end()
            case 3: more.end()
            case 4: session.end()
            default: newcomer.end()
            }
        }
        #expect(registry.heldBytes == 0)
    }

    // MARK: Pace

    @Test func cutsAReaderThatIsSlowForAWindow() {
        var pace = ResponseRateMonitor(rate: 1_000, window: 5)
        pace.didWrite(100_000)
        pace.beginsWait(unsent: 100_000, now: 10)
        var unsent = 100_000
        var cutAt: Int64?
        for second in Int64(11)...40 where cutAt == nil {
            unsent -= 500
            if pace.isTooSlow(unsent: unsent, now: second) { cutAt = second }
        }
        #expect(cutAt == 21, "half the rate uses the window's credit up after twice the window")
    }

    @Test func allowsAReaderAtTheRateAndASilentSource() {
        var pace = ResponseRateMonitor(rate: 1_000, window: 5)
        pace.didWrite(100_000)
        pace.beginsWait(unsent: 100_000, now: 0)
        for second in Int64(1)...90 {
            let isTooSlow = pace.isTooSlow(unsent: 100_000 - Int(second) * 1_000, now: second)
            #expect(!isTooSlow)
        }
        // An hour without a byte from the source, and then a wait that ends at once.
        pace.didWrite(10)
        pace.beginsWait(unsent: 10, now: 4_000)
        let isTooSlow = pace.isTooSlow(unsent: 0, now: 4_001)
        #expect(!isTooSlow)
    }

    @Test func whatAFastReaderTookBuysNoPatience() {
        var pace = ResponseRateMonitor(rate: 1_000, window: 5)
        pace.beginsWait(unsent: 0, now: 0)
        pace.didWrite(10_000_000)
        let isTooSlow = pace.isTooSlow(unsent: 0, now: 1)
        #expect(!isTooSlow)
        pace.didWrite(1_000_000)
        let cut = (Int64(2)...20).first { pace.isTooSlow(unsent: 1_000_000, now: $0) }
        #expect(cut == 7)
    }
}

/// Resumes what waits in a schedule, and tells which it was. Safe to send: the test touches it one step after
/// the other.
private final class ScheduleBox: @unchecked Sendable {
    let schedule: LoopTimeScheduler
    let shares: [AddressTimeShare]
    let count = Locked<Int>(0)
    private var names: [[String]] = [[], []]

    init(schedule: LoopTimeScheduler, shares: [AddressTimeShare]) {
        self.schedule = schedule
        self.shares = shares
    }

    func append(_ continuation: UnsafeContinuation<Void, Never>, share: Int, name: String) {
        schedule.append(.task(continuation), of: shares[share])
        names[share].append(name)
        count.with { $0 += 1 }
    }

    /// Which address was next is seen from whose share was given its part.
    func resumeNext() -> String? {
        for share in shares { share.spend(1_000_000_000_000, in: 7) }
        guard case .task(let continuation) = schedule.popFirst(in: 7) else { return nil }
        continuation.resume()
        guard let index = shares.firstIndex(where: { !$0.isUsedUp(in: 7, more: 0) }) else { return nil }
        return names[index].removeFirst()
    }
}

/// Says of its callers what their target says.
private struct ProvingHandler: Handler {
    func handle(_ exchange: any Exchange) async {
        switch exchange.request.text(exchange.request.target) {
        case "/session": exchange.recordProof(.session(account: 1))
        case "/release": exchange.recordProof(.release)
        default: break
        }
        await exchange.respond(ServerResponse(status: 200, type: "text/plain", body: Array("proved".utf8)))
    }

    func refuse(_ refusal: Refusal, on exchange: any Exchange) async {
        await exchange.respond(ServerResponse(status: refusal.code.status, type: "text/plain", body: []))
    }
}
