import CountersignAuthority
import CountersignGate
import CountersignMemory
import CountersignSQL
import CountersignWire
import Glibc
import Testing
import Waiting

@testable import CountersignServer

/// A node follows the store before its lease counts, and refuses once it has not heard the store for longer.
@Suite struct NodeMembershipTests {
    private let server: SessionServer
    private let channel = ScriptedChannel()
    private let readiness = Readiness()
    private let schema = ScriptedSchema()

    init() throws { server = try SessionServer() }

    private func started(_ policy: OutagePolicy) throws -> NodeMembership {
        let membership = try NodeMembership(
            channel, named: "here", lease: NodeLease(), policy: policy,
            status: NodeStatus(readiness, log: nil), handOver: HandoverState(),
            clock: TrustedClock())
        try membership.start(
            .init(
                deployment: server.deployment, keys: server.sessions.live.keys,
                sessions: server.sessions.live, schema: schema),
            replayGuard: "file")
        return membership
    }

    /// Until the membership has begun three further calls of that kind.
    private func untilCalled(_ kind: String) {
        func now() -> Int { channel.calls.count { $0.hasPrefix(kind) } }
        let before = now()
        blockUntil("three calls of \(kind)") { now() >= before + 3 }
    }

    @Test func looksOnceItIsSeen() throws {
        channel.script.with { $0.view.change = 7 }
        let membership = try started(.grace(seconds: 5))
        defer { membership.stop() }
        #expect(channel.calls.starts(with: ["renew -1", "look", "confirm 7"]))
        #expect(membership.lease.isFresh)
        #expect(membership.figures.change == 7)
    }

    @Test("another change of the generation is followed before it is confirmed", arguments: [true, false])
    func follows(_ isOfGeneration: Bool) throws {
        let membership = try started(.grace(seconds: 5))
        defer { membership.stop() }
        let before = server.deployment.generation.current
        channel.script.with { script in
            script.view.change += 1
            if isOfGeneration { script.view.generation += 1 }
            script.isHinted = true
        }
        blockUntil("the confirmation") { channel.calls.contains("confirm 1") }
        #expect((server.deployment.generation.current == before + 1) == isOfGeneration)
    }

    @Test("without the store, the lease lapses", arguments: [OutagePolicy.closed, .grace(seconds: 1)])
    func lapses(_ policy: OutagePolicy) throws {
        let membership = try started(policy)
        defer { membership.stop() }
        channel.script.with { $0.isAway = true }
        blockUntil("the lease lapses") { !membership.lease.isFresh }
        blockUntil("the node is not ready") { readiness.reasons.map(\.cause) == [.nodes] }
        channel.script.with { $0.isAway = false }
        blockUntil("the lease is renewed") { membership.lease.isFresh && readiness.reasons.isEmpty }
    }

    @Test func graceIsLongerThanAttempts() throws {
        let membership = try started(.grace(seconds: 600))
        defer { membership.stop() }
        channel.script.with { $0.isAway = true }
        untilCalled("wait")
        #expect(membership.lease.isFresh)
    }

    /// Else the other nodes would wait for one that follows nothing.
    @Test func isNotRenewedWithoutALook() throws {
        let membership = try started(.grace(seconds: 1))
        defer { membership.stop() }
        channel.script.with { $0.isBlind = true }
        blockUntil("the lease lapses") { !membership.lease.isFresh }
        let renewals = channel.calls.count { $0.hasPrefix("renew") }
        untilCalled("look")
        #expect(channel.calls.count { $0.hasPrefix("renew") } == renewals)
    }

    @Test("another level of the schema is verified, and one that is not for this build lapses the lease")
    func verifiesTheSchema() throws {
        let membership = try started(.grace(seconds: 60))
        defer { membership.stop() }
        #expect(schema.verified.with { $0 } == 1)
        channel.script.with { ($0.view.level, $0.isHinted) = (1, true) }
        blockUntil("the schema's verification") { schema.verified.with { $0 } == 2 }
        #expect(membership.lease.isFresh)
        schema.isRefused.with { $0 = true }
        channel.script.with { ($0.view.level, $0.isHinted) = (2, true) }
        blockUntil("the lease lapses") {
            !membership.lease.isFresh && readiness.reasons.map(\.cause) == [.nodes]
        }
        untilCalled("look")
        #expect(!membership.lease.isFresh)
    }

    /// Else it would go on with values that it cannot open, and seal others under a key that is gone.
    @Test func hasTheNextMasterKeyBeforeItConfirms() throws {
        let membership = try started(.grace(seconds: 60))
        defer { membership.stop() }
        let next = server.deployment.folder.nextMasterKey
        // A command in another process.
        let command = try Deployment(
            folder: server.deployment.folder,
            store: StorePlace.sqlite(path: server.deployment.folder.database).open(),
            environment: SessionServer.environment)
        var isBegun = false
        _ = try MasterKeyRotation(of: command).run { stage in
            guard case .began = stage, !isBegun else { return }
            isBegun = true
            #expect(rename(next, "\(next).away") == 0)
            channel.script.with { script in
                (script.view.change, script.view.generation, script.isHinted) = (1, 1, true)
            }
            untilCalled("look")
            #expect(!channel.calls.contains("confirm 1"))
            #expect(rename("\(next).away", next) == 0)
            blockUntil("the confirmation") { channel.calls.contains("confirm 1") }
        }
        #expect(isBegun)
    }

    @Test func settlesOnceTheOthersFollow() async throws {
        let membership = try started(.grace(seconds: 5))
        defer { membership.stop() }
        try await membership.settle()
        channel.script.with { ($0.view.others, $0.view.confirmed, $0.view.change) = (2, 0, 1) }
        let isSettled = Locked(false)
        let waiting = Task {
            try await membership.settle()
            isSettled.with { $0 = true }
        }
        untilCalled("look")
        #expect(!isSettled.with { $0 })
        channel.script.with { $0.view.confirmed = 1 }
        try await waiting.value
    }

    @Test("a clock that differs by more than a second", arguments: [900, 1_100, -1_100])
    func clocks(_ ahead: Int64) throws {
        channel.script.with { $0.clock = -ahead }
        let membership = try started(.grace(seconds: 5))
        defer { membership.stop() }
        #expect(readiness.reasons.map(\.cause) == (abs(ahead) > 1_000 ? [.clock] : []))
    }

    @Test func tellsOfOtherReplayGuards() throws {
        channel.script.with { $0.view.strangers = 1 }
        let membership = try started(.grace(seconds: 5))
        defer { membership.stop() }
        #expect(readiness.reasons.map(\.cause) == [.replayGuards])
    }
}

private final class ScriptedSchema: SchemaStore {
    let verified = Locked(0)
    let isRefused = Locked(false)

    func prepare(
        consenting consent: MigrationConsent, verifyingBy rows: RowAuthenticator?
    ) throws(OperationalError) -> SchemaOutcome { SchemaOutcome() }

    func schemaPlan() throws(OperationalError) -> SchemaPlan { SchemaPlan(level: 0, target: 0, pending: []) }

    func verifySchema() throws(OperationalError) {
        verified.with { $0 += 1 }
        if isRefused.with({ $0 }) { throw OperationalError(.unreachable, message: "for later builds") }
    }
}

/// A store of one node, as a test says it is.
private final class ScriptedChannel: NodeChannel {
    struct Script {
        var view = NodeView(change: 0, generation: 0, others: 0, confirmed: nil, strangers: 0)
        var isHinted = false
        /// No call returns anything.
        var isAway = false
        /// No look returns anything.
        var isBlind = false
        /// Milliseconds by which the store's clock is ahead.
        var clock: Int64 = 0
        var calls: [String] = []
    }

    let script = Locked(Script())

    var calls: [String] { script.with { $0.calls } }

    private func note(_ call: String) throws(OperationalError) {
        let isThere = script.with { script in
            script.calls.append(call)
            return !script.isAway && !(script.isBlind && call == "look")
        }
        guard isThere else { throw OperationalError(.unreachable, message: "away") }
    }

    func wait(milliseconds: Int, alongside descriptor: Int32) throws(OperationalError) -> Bool {
        if script.with({ $0.isAway }) { try note("wait") }
        var other = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        _ = poll(&other, 1, Int32(min(milliseconds, 5)))
        return script.with { script in
            defer { script.isHinted = false }
            return script.isHinted
        }
    }

    func renew(_ node: Node) throws(OperationalError) -> Int64 {
        try note("renew \(node.applied)")
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000 + script.with { $0.clock }
    }

    func confirm(_ change: Int64, of node: Node) throws(OperationalError) { try note("confirm \(change)") }

    func look(as node: Node) throws(OperationalError) -> NodeView {
        try note("look")
        return script.with { $0.view }
    }

    func remove(_ node: Node) throws(OperationalError) { try note("remove") }
}
