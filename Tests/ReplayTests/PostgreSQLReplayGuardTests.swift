import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignMemory
import CountersignSQL
import CountersignSchemes
import CountersignWire
import DatabaseFixture
import Testing
import Waiting

@testable import CountersignReplay

/// Two nodes over one PostgreSQL database: what it loses is refused by both, and a minute's table is never
/// there again without its entries. Each test shows that its fault happened.
@Suite(.enabled(if: TestDatabases.isThere), .serialized) struct PostgreSQLReplayGuardTests {
    let server: TestDatabases
    let address: PostgreSQLAddress
    let deployment: TestDeployment

    init() throws {
        server = try #require(TestDatabases.shared)
        address = try server.make()
        deployment = try TestDeployment(address)
    }

    @discardableResult
    private func sql(_ text: String) throws -> String { try server.run(text, in: address.database) }

    private func table(_ created: Int64) -> String {
        "countersign_replay.m\(PostgreSQLEntryName.minute(of: created))"
    }

    @Test func firstStartHasNoFloorAndARowForEachEntry() async throws {
        let node = try await deployment.start(address)
        defer { node.stop() }
        let usage = node.replay.usage
        #expect(usage == .init(epoch: 1, floor: 0, refusals: usage.refusals, failure: nil))
        let now = SystemTime().now
        #expect(await node.code(entry("n", created: now)) == nil)
        #expect(try sql("SELECT count(*) FROM \(table(now))") == "1")
        #expect(await node.code(entry("n", created: now - 299)) == nil, "another minute is another entry")
    }

    @Test func aNodeIsNotReadyBeforeEachLoopHasItsConnection() async throws {
        let node = try deployment.node(address)
        defer { node.stop() }
        let late = try EventLoop()
        node.replay.attach(to: late)
        #expect(node.replay.usage.failure != nil)
        try node.replay.start()
        // The guard is usable, and the loop is not.
        await until("the loop without a connection") {
            node.replay.usage.failure == "1 of 2 event loops have no connection"
        }
        try late.start(name: "late")
        defer {
            late.stop()
            late.join()
        }
        await until("the guard works again") { node.replay.usage.failure == nil }
        #expect(await node.code(entry("first")) == nil, "not even the first one is refused")
    }

    @Test func manyEntriesOfSeveralMinutesInOneTurn() async throws {
        let node = try await deployment.start(address)
        defer { node.stop() }
        let now = SystemTime().now
        let codes = await withTaskGroup(of: Refusal.Code?.self, returning: [Refusal.Code?].self) { group in
            for number in 0..<600 {
                let entry = entry("n \(number / 2)", created: now - Int64(number / 2 % 250))
                group.addTask { await node.code(entry) }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(codes.filter { $0 == nil }.count == 300 && codes.filter { $0 == .replayed }.count == 300)
    }

    @Test("another data set, and tables that were replaced", arguments: [true, false])
    func losses(_ isPromoted: Bool) async throws {
        let one = try await deployment.start(address)
        let two = try await deployment.start(address)
        defer { one.stop(); two.stop() }
        let now = SystemTime().now
        let seen = entry("seen", created: now)
        #expect(await one.code(seen) == nil)
        #expect(await two.code(seen) == .replayed)
        if isPromoted {
            // What a standby has that was promoted: an epoch of the timeline before.
            let record = ReplayEpochRecord(
                deployment.deployment.store, of: .postgreSQL, secret: deployment.deployment.replaySecret)
            let epoch = try #require(try record.current())
            var former = epoch
            former.identity.history = "0000000000000000"
            #expect(try record.replace(epoch, by: former) == former)
        } else {
            try sql("DROP SCHEMA countersign_replay CASCADE")
        }
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
        await until("another answer") { await one.code(later) != .unavailable }
        #expect(await two.code(later) == .replayed)
    }

    @Test func anEpochOfAnotherNodeIsComparedWithEachInsertion() async throws {
        let node = try await deployment.start(address)
        defer { node.stop() }
        // The node also reads the epoch now and then, and may come to know of it before the insertion.
        var attempts = 0
        try await until("the refusal of the other epoch") {
            attempts += 1
            try sql("UPDATE countersign_replay.state SET epoch = 'other-\(attempts)'")
            guard let refused = await node.refusal(entry("n-\(attempts)")) else {
                Issue.record("inserted in another epoch")
                return true
            }
            return refused.detail.contains("another epoch")
        }
    }

    @Test func aTableThatWasDroppedIsNotMadeAgain() async throws {
        let node = try await deployment.start(address)
        defer { node.stop() }
        let seen = entry("seen", created: SystemTime().now - 120)
        #expect(await node.code(seen) == nil)
        try sql("DROP TABLE \(table(seen.created))")
        // Each is inserted once the controller has looked again.
        for hours in 1...3 {
            let later = entry("later", created: .far + Int64(hours) * 3_600)
            #expect(await node.code(seen) == .unavailable)
            await until("another look") { [nil, .replayed].contains(await node.code(later)) }
        }
        #expect(await node.code(seen) == .unavailable)
        #expect(try sql("SELECT to_regclass('\(table(seen.created))') IS NULL") == "t")
        #expect(await node.code(entry("other")) == nil, "other minutes go on")
    }

    @Test func tablesEndAfterTheRetentionAndNotBefore() async throws {
        let now = SystemTime().now
        let node = try await deployment.start(address, window: 300)
        #expect(await node.code(entry("n", created: now - 200)) == nil)
        #expect(try sql("SELECT to_regclass('\(table(now - 200))') IS NULL") == "f")
        node.stop()
        let shorter = try await deployment.start(address, window: 10)
        defer { shorter.stop() }
        await until("the table's end") {
            (try? sql("SELECT to_regclass('\(table(now - 200))') IS NULL")) == "t"
        }
        #expect(try sql("SELECT to_regclass('\(table(now))') IS NULL") == "f")
        #expect(await shorter.code(entry("n", created: now - 200)) == .unavailable)
    }

    @Test("a node whose clock is another one does not start", arguments: [30, -30])
    func clocks(_ difference: Int64) async throws {
        let node = try deployment.node(address, clock: ShiftedTime(seconds: difference))
        defer { node.stop() }
        do throws(OperationalError) {
            try node.replay.start()
            Issue.record("it started")
        } catch {
            // A second may pass between the readings.
            #expect(error.message.contains("the clock of PostgreSQL differs from this machine's by "))
        }
    }

    @Test("a node whose clock jumps inserts nothing", arguments: [30, -30, 8])
    func jumps(_ difference: Int64) async throws {
        let clock = ShiftedTime(seconds: 0)
        let node = try await deployment.start(address, clock: clock)
        defer { node.stop() }
        clock.shift.with { $0 = difference }
        #expect(await node.code(entry("n")) == .unavailable)
        clock.shift.with { $0 = 0 }
        await node.untilReady()
        #expect(node.replay.usage.epoch == 1)
    }

    @Test func timesOfAWrongClockStayRefusedAfterALoss() async throws {
        let node = try await deployment.start(address)
        defer { node.stop() }
        let record = ReplayEpochRecord(
            deployment.deployment.store, of: .postgreSQL, secret: deployment.deployment.replaySecret)
        let epoch = try #require(try record.current())
        let ahead = SystemTime().now + 86_400
        var former = epoch.extended(at: ahead)
        former.identity.history = "0000000000000000"
        #expect(try record.replace(epoch, by: former) == former)
        await until("the next epoch") { node.replay.usage.epoch == 2 && node.replay.usage.failure == nil }
        #expect(node.replay.usage.floor < ahead)
        let refused = await node.refusal(entry("n", created: ahead))
        #expect(refused?.detail.contains("may have been admitted by a wrong clock") == true)
    }

    @Test func aReplayFileBeforeRaisesTheFloor() async throws {
        try deployment.deployment.store.set(.replayFile, to: Array(String(repeating: "a", count: 32).utf8))
        let node = try await deployment.start(address)
        #expect(await node.code(entry("n", created: SystemTime().now + 299)) == .unavailable)
        #expect(try SharedReplayKind.inUse(in: deployment.deployment.store) == .postgreSQL)
        // Another guard takes its place, and no node lives that uses it: this one takes the deployment back.
        try deployment.deployment.store.set(.replayFile, to: SharedReplayKind.redis.mark)
        await until("the guard is in use again") {
            (try? SharedReplayKind.inUse(in: deployment.deployment.store)) == .postgreSQL
        }
        node.stop()
    }

    @Test func anAlteredRecordIsRefused() async throws {
        let node = try await deployment.start(address)
        node.stop()
        let store = deployment.deployment.store
        var record = try #require(try store.value(of: .replayEpoch))
        let digit = try #require(record.lastIndex(of: UInt8(ascii: "0")))
        record[digit] = UInt8(ascii: "1")
        try store.set(.replayEpoch, to: record)
        let next = try deployment.node(address)
        defer { next.stop() }
        #expect(
            throws: OperationalError(.failed, message: "replay epoch: its value in the store was altered")
        ) {
            try next.replay.start()
        }
    }

    @Test func aFloorCoversTheWidestWindowOfItsEpoch() async throws {
        let node = try await deployment.start(address, window: 100)
        defer { node.stop() }
        let record = try deployment.deployment.store.value(of: .replayEpoch)
        node.replay.setRetention(.init(window: 900, lifetime: 0))
        await until("the next record of the epoch") {
            (try? deployment.deployment.store.value(of: .replayEpoch)).flatMap { $0 } != record
        }
        node.replay.setRetention(.init(window: 100, lifetime: 0))
        let now = SystemTime().now
        try sql("UPDATE countersign_replay.state SET epoch = 'another'")
        await until("the next epoch") { node.replay.usage.epoch == 2 }
        #expect(node.replay.usage.floor >= now + 900)
    }

    @Test func aTriggerInTheSchemaIsRefused() async throws {
        let node = try await deployment.start(address)
        defer { node.stop() }
        try sql(
            """
            CREATE FUNCTION countersign_replay.does() RETURNS trigger LANGUAGE plpgsql
                AS 'BEGIN RETURN NEW; END';
            CREATE TRIGGER does BEFORE UPDATE ON countersign_replay.state
                FOR EACH ROW EXECUTE FUNCTION countersign_replay.does()
            """)
        await until("the guard's failure") {
            node.replay.usage.failure?.contains("a trigger or rule") == true
        }
        #expect(await node.code(entry("n")) == .unavailable)
        try sql("DROP TRIGGER does ON countersign_replay.state")
        // PostgreSQL forgets that there was one when the table is vacuumed.
        try sql("VACUUM countersign_replay.state")
        await node.untilReady()
        #expect(node.replay.usage.epoch == 1)
    }

    @Test func connectionsThatEndAreOpenedAgain() async throws {
        let node = try await deployment.start(address)
        defer { node.stop() }
        let seen = entry("seen")
        #expect(await node.code(seen) == nil)
        // Other tests use other databases of the same server.
        try sql(
            """
            SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE application_name = 'countersign' AND datname = current_database()
            """)
        await until("the entry's replay") { await node.code(seen) == .replayed }
        #expect(node.replay.usage.epoch == 1)
    }
}
