import CountersignAuthority
import CountersignGate
import CountersignMemory
import CountersignSchemes
import CountersignWire
import Glibc
import Testing
import Waiting

@testable import CountersignReplay

/// Two nodes over one Redis and one store: what Redis loses is refused by both, and without Redis nothing is
/// admitted. Each test shows that its fault happened.
@Suite(.enabled(if: TestRedis.isThere), .serialized) struct RedisReplayGuardTests {
    let deployment: TestDeployment
    let server: TestRedis

    init() throws {
        deployment = try TestDeployment()
        server = try TestRedis()
    }

    private func keys() throws -> Int { Int(try server.call("DBSIZE")) ?? -1 }

    @Test func firstStartHasNoFloorAndMarksEachSlot() async throws {
        let node = try await deployment.start(server.url)
        defer { node.stop() }
        #expect(
            node.replay.usage == .init(epoch: 1, floor: 0, refusals: node.replay.usage.refusals, failure: nil)
        )
        #expect(try keys() >= 256)
        #expect(await node.code(entry("n", created: SystemTime().now - 299)) == nil)
        #expect(try server.call("--scan", "--pattern", "*n1*").isEmpty)
    }

    @Test("a loss of all contents, and of one marker", arguments: [true, false])
    func losses(_ isWhole: Bool) async throws {
        let one = try await deployment.start(server.url)
        let two = try await deployment.start(server.url)
        defer { one.stop(); two.stop() }
        let now = SystemTime().now
        let seen = entry("seen", created: now)
        #expect(await one.code(seen) == nil)
        #expect(await two.code(seen) == .replayed)
        if isWhole {
            try server.call("FLUSHALL")
        } else {
            let names = RedisReplayKeys(deployment.deployment.replaySecret).names(of: seen)
            #expect(try server.call("DEL", names.entry, names.marker) == "2")
        }
        for node in [one, two] { #expect(await node.code(seen) == .unavailable) }
        for node in [one, two] {
            await until("the next epoch") { node.replay.usage.epoch >= 2 && node.replay.usage.failure == nil }
            #expect(node.replay.usage.floor >= now + 300 + ReplayEpoch.margin)
            // Everything that may have been admitted is refused, up to the window ahead of the clock.
            for created in [now, now + 300] {
                let refused = await node.refusal(entry("seen", created: created))
                #expect(refused?.code == .unavailable && (refused?.retryAfter ?? 0) > 300)
            }
        }
        #expect(one.replay.usage.floor == two.replay.usage.floor, "both have the store's epoch")
        let later = entry("later", created: one.replay.usage.floor + 1)
        await two.untilReady()
        #expect(await one.code(later) == nil)
        #expect(await two.code(later) == .replayed)
    }

    @Test func anotherNodeLearnsOfALossThatItDidNotSee() async throws {
        let one = try await deployment.start(server.url)
        let two = try await deployment.start(server.url)
        defer { one.stop(); two.stop() }
        try server.call("FLUSHALL")
        _ = await one.code(entry("n"))
        await until("the next epoch") { two.replay.usage.epoch >= 2 }
        #expect(deployment.notes.with { $0 }.contains { $0.contains("signatures made up to") })
    }

    @Test func aRestartOfTheNodeKeepsTheEpoch() async throws {
        let first = try await deployment.start(server.url)
        let seen = entry("seen")
        #expect(await first.code(seen) == nil)
        first.stop()
        let second = try await deployment.start(server.url)
        defer { second.stop() }
        #expect(second.replay.usage.epoch == 1)
        #expect(await second.code(seen) == .replayed)
    }

    @Test func aReplayFileBeforeRaisesTheFloor() async throws {
        try deployment.deployment.store.set(.replayFile, to: Array(String(repeating: "a", count: 32).utf8))
        let node = try await deployment.start(server.url)
        defer { node.stop() }
        #expect(await node.code(entry("n", created: SystemTime().now + 299)) == .unavailable)
        #expect(try deployment.deployment.store.value(of: .replayFile) == SharedReplayKind.redis.mark)
    }

    /// Each machine's own `redis://127.0.0.1`, for example.
    @Test func anotherServerIsNotTakenBesideALiveNode() async throws {
        let one = try await deployment.start(server.url)
        defer { one.stop() }
        #expect(one.replay.name.place?.count == 32)
        let other = try TestRedis()
        let name = one.replay.name.text
        let wrong = try deployment.node(other.url) { (guarding, isStarting) throws(OperationalError) in
            #expect(isStarting && NodeReplayGuard(text: name).differs(from: guarding))
            return Node(id: "1", name: "there", replayGuard: name, lease: 5_000)
        }
        defer { wrong.stop() }
        do throws(OperationalError) {
            try wrong.replay.start()
            Issue.record("it started")
        } catch {
            let text = "Redis at 127.0.0.1:\(other.port) is not the server that node there uses"
            #expect(error.message.contains("--replay: \(text)"), "\(error.message)")
        }
        #expect(try other.call("DBSIZE") == "0", "nothing is written there")
        #expect(await one.code(entry("n")) == nil)
        #expect(one.replay.usage.epoch == 1, "the live node goes on")
    }

    @Test(
        "a displaced guard takes the deployment back once no live node uses the other",
        arguments: [true, false])
    func displaced(_ isByRedis: Bool) async throws {
        let rival = Locked<Node?>(nil)
        let one = try deployment.node(server.url) { (guarding, _) throws(OperationalError) in
            rival.with { $0 }.flatMap {
                NodeReplayGuard(text: $0.replayGuard).differs(from: guarding) ? $0 : nil
            }
        }
        defer { one.stop() }
        try one.replay.start()
        await one.untilReady()
        let name = one.replay.name
        let seen = entry("seen")
        if isByRedis {
            // As if the lease of the first one had lapsed.
            let other = try TestRedis()
            rival.with { $0 = Node(id: "2", name: "there", replayGuard: "redis 2e", lease: 5_000) }
            let two = try await deployment.start(other.url)
            #expect(two.replay.name.differs(from: name))
            rival.with { $0?.replayGuard = two.replay.name.text }
            #expect(await two.code(entry("other", created: .far)) == nil)
            await until("the first is displaced") {
                one.replay.usage.failure?.contains("is not the server that node there") == true
            }
            #expect(await two.code(entry("again", created: .far)) == nil, "the other goes on")
            two.stop()
        } else {
            rival.with { $0 = Node(id: "2", name: "there", replayGuard: "file host 1 2", lease: 5_000) }
            try deployment.deployment.store.set(
                .replayFile, to: Array(String(repeating: "a", count: 32).utf8))
            await until("the first is displaced") {
                one.replay.usage.failure?.contains("`redis` here and `file` at node there") == true
            }
        }
        #expect(await one.code(seen) == .unavailable)
        #expect(one.replay.name.place == name.place && one.replay.name.isAway, "it has its server still")
        let now = SystemTime().now
        rival.with { $0 = nil }
        await until("the first is back") { one.replay.usage.failure == nil }
        // Above all that the other may have admitted.
        #expect(one.replay.usage.floor >= now + 300 + ReplayEpoch.margin)
        #expect(await one.code(entry("seen", created: now + 300)) == .unavailable)
        await one.untilReady()
    }

    /// While it is known which server nodes use, a server that another node reaches is no successor of it.
    @Test func aServerThatIsAwayIsTheNodesServerStill() async throws {
        let one = try await deployment.start(server.url)
        defer { one.stop() }
        let name = one.replay.name
        server.signal(SIGKILL)
        await until("the failure") { one.replay.usage.failure?.contains("Redis at") == true }
        #expect(!name.isAway && one.replay.name == NodeReplayGuard(text: "\(name.text) away"))
    }

    @Test func anEmptiedServerIsAnother() async throws {
        let rival = Locked<Node?>(nil)
        let one = try deployment.node(server.url) { (_, _) throws(OperationalError) in rival.with { $0 } }
        defer { one.stop() }
        try one.replay.start()
        await one.untilReady()
        let name = one.replay.name
        // Another node has its server still, which cannot be this one.
        rival.with { $0 = Node(id: "2", name: "there", replayGuard: name.text, lease: 5_000) }
        try server.call("FLUSHALL")
        await until("the failure") {
            one.replay.usage.failure?.contains("is not the server that node there") == true
        }
        #expect(one.replay.name.place == nil)
        rival.with { $0 = nil }
        await until("the next epoch") { one.replay.usage.epoch == 2 && one.replay.usage.failure == nil }
        #expect(one.replay.name.place != nil && one.replay.name != name)
    }

    @Test func anAlteredRecordIsRefused() async throws {
        let node = try await deployment.start(server.url)
        node.stop()
        let store = deployment.deployment.store
        var record = try #require(try store.value(of: .replayEpoch))
        let digit = try #require(record.lastIndex(of: UInt8(ascii: "0")))
        record[digit] = UInt8(ascii: "1")
        try store.set(.replayEpoch, to: record)
        let next = try deployment.node(server.url)
        defer { next.stop() }
        #expect(
            throws: OperationalError(.failed, message: "replay epoch: its value in the store was altered")
        ) {
            try next.replay.start()
        }
    }

    @Test(
        "a server that may forget is refused",
        arguments: [
            (
                [["maxmemory", "100mb"], ["maxmemory-policy", "allkeys-lru"]],
                "`maxmemory-policy` is `allkeys-lru`"
            ),
            ([["maxmemory", "100mb"], ["maxmemory-policy", "volatile-ttl"]], "expected noeviction"),
            ([["replicaof", "127.0.0.1 1"]], "its role is `slave`; expected `master`"),
        ])
    func settings(_ row: (settings: [[String]], message: String)) async throws {
        let server = try TestRedis(
            row.settings.flatMap { ["--\($0[0])"] + $0[1].split(separator: " ").map(String.init) })
        let node = try deployment.node(server.url)
        defer { node.stop() }
        do throws(OperationalError) {
            try node.replay.start()
            Issue.record("it started")
        } catch {
            #expect(error.message.contains(row.message), "\(error.message)")
        }
    }

    @Test func aReplicaDemandsThatWritesReachIt() async throws {
        let replica = try TestRedis(["--replicaof", "127.0.0.1", server.port])
        await until("the replica") {
            (try? server.call("INFO", "replication").contains("connected_slaves:1")) == true
        }
        let refused = try deployment.node(server.url)
        #expect(throws: OperationalError.self) { try refused.replay.start() }
        refused.stop()
        try server.call("CONFIG", "SET", "min-replicas-to-write", "1")
        try server.call("CONFIG", "SET", "min-replicas-to-write", "2")
        let without = try deployment.node(server.url)
        #expect(throws: OperationalError.self) { try without.replay.start() }
        without.stop()
        #expect(try deployment.deployment.store.value(of: .replayEpoch) == nil, "no epoch without markers")
        try server.call("CONFIG", "SET", "min-replicas-to-write", "1")
        await until("the replica counts") {
            (try? server.call("INFO", "replication").contains("min_slaves_good_slaves:1")) == true
        }
        let node = try await deployment.start(server.url)
        #expect(node.replay.usage.floor == 0)
        let seen = entry("seen")
        #expect(await node.code(seen) == nil)
        // The replica is promoted, and what the master acknowledged last may be missing.
        await until("the server's entries") { (try? replica.call("DBSIZE")) == (try? server.call("DBSIZE")) }
        try replica.call("REPLICAOF", "NO", "ONE")
        server.signal(SIGKILL)
        node.stop()
        let both = "redis://127.0.0.1:\(server.port),127.0.0.1:\(replica.port)"
        let next = try await deployment.start(both)
        defer { next.stop() }
        #expect(next.replay.usage.epoch == 2)
        #expect(await next.code(seen) == .unavailable)
    }

    @Test func withoutRedisNothingIsAdmitted() async throws {
        let node = try await deployment.start(server.url, patience: SharedReplayKind.patience)
        defer { node.stop() }
        server.signal(SIGKILL)
        for _ in 0..<20 { #expect(await node.code(entry("n", created: .far)) == .unavailable) }
        await until("the guard's failure") { node.replay.usage.failure?.contains("Redis at") == true }
        #expect(node.replay.usage.refusals >= 20)
    }

    /// The first request waits for the guard's patience; the others are refused at once, and not sent. Those
    /// that were sent are run when the server continues.
    @Test func aStoppedServerDelaysNothing() async throws {
        let node = try await deployment.start(server.url, patience: SharedReplayKind.patience)
        defer { node.stop() }
        try server.call("CONFIG", "RESETSTAT")
        server.signal(SIGSTOP)
        for number in 0..<20 {
            #expect(await node.code(entry("n \(number)", created: .far)) == .unavailable)
        }
        server.signal(SIGCONT)
        await node.untilReady()
        let line = try server.call("INFO", "commandstats").split(separator: "\r\n").first {
            $0.hasPrefix("cmdstat_evalsha:calls=")
        }
        let calls = line?.split(separator: "=").dropFirst().first?.split(separator: ",").first
        // The guard's own checks are among them.
        #expect(calls.flatMap { Int($0) } ?? 0 < 10, "\(line ?? "")")
        #expect(node.replay.usage.epoch == 1, "nothing was lost")
    }

    @Test func aWiderRetentionIsKeptFromThenOn() async throws {
        let node = try await deployment.start(server.url, window: 100)
        defer { node.stop() }
        let now = SystemTime().now
        #expect(await node.code(entry("old", created: now - 200)) == .unavailable, "it could not be kept")
        node.replay.setRetention(.init(window: 400, lifetime: 0))
        // What was admitted before is known for 160 s only.
        await until("the entry is inserted") { await node.code(entry("new", created: now - 100)) == nil }
        #expect(await node.code(entry("old", created: now - 200)) == .unavailable)
        #expect(await node.code(entry("far", created: now + 1_000)) == nil)
    }

    @Test("a node whose clock is another one does not start", arguments: [30, -30])
    func clocks(_ difference: Int64) async throws {
        let node = try deployment.node(server.url, clock: ShiftedTime(seconds: difference))
        defer { node.stop() }
        do throws(OperationalError) {
            try node.replay.start()
            Issue.record("it started")
        } catch {
            // A second may begin between both readings.
            #expect(
                (Int64(-1)...1).contains {
                    error.message.contains("differs from this machine's by \($0 - difference) s")
                }, "\(error.message)")
        }
    }

    @Test("a node whose clock jumps inserts nothing", arguments: [30, -30])
    func jumps(_ difference: Int64) async throws {
        let clock = ShiftedTime(seconds: 0)
        let node = try deployment.node(server.url, clock: clock)
        defer { node.stop() }
        try node.replay.start()
        await node.untilReady()
        clock.shift.with { $0 = difference }
        #expect(await node.code(entry("n")) == .unavailable)
        clock.shift.with { $0 = 0 }
        await node.untilReady()
        #expect(node.replay.usage.epoch == 1)
    }

    @Test func withoutTheStoreTheEpochHoldsForItsLease() async throws {
        let node = try await deployment.start(server.url)
        defer { node.stop() }
        deployment.store.fails.with { $0 = true }
        // The controller has found out, and the lease goes on.
        await until("the note that the store is down") {
            deployment.notes.with { $0.last == "unavailable: the store is down" }
        }
        #expect(await node.code(entry("n")) == nil)
        #expect(await node.code(entry("n")) == .replayed)
        await until("another answer") { await node.code(entry("other")) == .unavailable }
        #expect(node.replay.usage.failure?.contains("the store has not confirmed the epoch") == true)
        // Another node finds a loss meanwhile; this one learns of it before it inserts again.
        try server.call("FLUSHALL")
        deployment.store.fails.with { $0 = false }
        await until("the guard works again") { node.replay.usage.failure == nil }
        #expect(node.replay.usage.epoch == 2)
        #expect(await node.code(entry("n")) == .unavailable)
    }

    @Test func aForgottenScriptIsLoadedAgain() async throws {
        let node = try await deployment.start(server.url)
        defer { node.stop() }
        let seen = entry("seen")
        #expect(await node.code(seen) == nil)
        try server.call("SCRIPT", "FLUSH")
        #expect(await node.code(entry("n")) == .unavailable)
        await until("the entry's replay") { await node.code(seen) == .replayed }
        #expect(node.replay.usage.epoch == 1)
    }

    @Test func evictedKeysAreALoss() async throws {
        let node = try await deployment.start(server.url)
        defer { node.stop() }
        let seen = entry("seen")
        #expect(await node.code(seen) == nil)
        try server.call("CONFIG", "SET", "maxmemory-policy", "allkeys-random")
        try server.call("CONFIG", "SET", "maxmemory", "1")
        await until("the server's entries") { (try? server.call("DBSIZE")) == "0" }
        try server.call("CONFIG", "SET", "maxmemory", "0")
        await until("the next epoch") { node.replay.usage.epoch >= 2 }
        #expect(await node.code(seen) == .unavailable)
    }
}

/// The system's clock, shifted by what a test sets.
final class ShiftedTime: TimeSource {
    let shift: Locked<Int64>

    init(seconds: Int64) { shift = Locked(seconds) }

    var now: Int64 { SystemTime().now + shift.with { $0 } }
}
