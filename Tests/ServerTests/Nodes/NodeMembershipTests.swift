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

    private func membership(_ policy: OutagePolicy) throws -> NodeMembership {
        let membership = try NodeMembership(
            channel, named: "here", lease: NodeLease(), policy: policy,
            status: NodeStatus(readiness, log: nil), handOver: HandoverState(), clock: TrustedClock())
        membership.terms.settings = SharedSettings(["prefix": "/a"])
        membership.terms.replayGuard = { "redis 1f" }
        return membership
    }

    private func start(_ membership: NodeMembership) throws {
        try membership.start(
            .init(
                deployment: server.deployment, keys: server.sessions.live.keys,
                sessions: server.sessions.live, schema: schema))
    }

    private func started(_ policy: OutagePolicy) throws -> NodeMembership {
        let membership = try membership(policy)
        try start(membership)
        return membership
    }

    /// A live node that has another prefix, or another replay guard.
    private func other(prefix: String = "/a", guard name: String = "redis 1f") -> Node {
        Node(
            id: "o", name: "there", replayGuard: name, lease: 5_000, applied: 0,
            settings: SharedSettings(["prefix": prefix]))
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

    /// What a node that is wrong does must not keep those that are right from serving.
    @Test("what others have differently is shown", arguments: [true, false])
    func showsDifferences(_ isGuard: Bool) throws {
        let membership = try started(.grace(seconds: 5))
        defer { membership.stop() }
        let other = isGuard ? other(guard: "redis 2e") : other(prefix: "/b")
        channel.script.with { $0.others = [other] }
        blockUntil("the warning") { readiness.pendingReasons.map(\.cause) == [.settings] }
        let text = isGuard ? "--replay is `redis 1f` here and `redis 2e`" : "--prefix is `/a` here and `/b`"
        #expect(readiness.pendingReasons.first?.detail == "\(text) at node there")
        #expect(readiness.reasons.isEmpty && membership.lease.isFresh)
        channel.script.with { $0.others = [] }
        blockUntil("the end of the warning") { readiness.pendingReasons.isEmpty }
    }

    @Test func aStartBesideAnotherValueIsRefusedAndListed() throws {
        // Silent for ever less time: it renews its lease.
        channel.script.with { $0.others = [other(prefix: "/b")] }
        let membership = try membership(.grace(seconds: 5))
        let message = "--prefix is `/a` here and `/b` at node there; expected the same at all live nodes"
        do throws(OperationalError) {
            try membership.enter()
            Issue.record("it entered")
        } catch {
            #expect(error.message.hasPrefix(message), "\(error.message)")
        }
        #expect(!channel.calls.contains { $0.hasPrefix("renew") })
        #expect(channel.calls.last == "refused --prefix is `/a` here and `/b` at node there")
    }

    /// Its lease ends by itself.
    @Test func aNodeThatWasKilledKeepsNoStartOut() throws {
        channel.script.with { ($0.others, $0.isKilled) = ([other(prefix: "/b")], true) }
        let membership = try membership(.grace(seconds: 5))
        try membership.enter()
        #expect(channel.calls.last == "renew \(Int64.max)")
    }

    @Test("values that a command has announced, and those of the process that is replaced, let a node enter")
    func permitted() throws {
        channel.script.with { $0.others = [other(prefix: "/b")] }
        let announced = try membership(.grace(seconds: 5))
        announced.terms.record = { () throws(OperationalError) in
            SharedSettingsRecord(next: SharedSettings(["prefix": "/a"]))
        }
        try announced.enter()
        let successor = try membership(.grace(seconds: 5))
        successor.terms.predecessor = "o"
        try successor.enter()
        // Two guards would each admit a request.
        channel.script.with { $0.others = [other(guard: "redis 2e")] }
        announced.terms.record = { () throws(OperationalError) in
            SharedSettingsRecord(next: SharedSettings(["replay": "redis"]))
        }
        #expect(throws: OperationalError.self) { try announced.enter() }
    }

    /// Others may have started with other values, and have used another replay guard.
    @Test func aNodeWhoseLeaseHasLapsedEntersLikeAStart() throws {
        let membership = try membership(.grace(seconds: 1))
        let reclaims = Locked(0)
        membership.terms.reclaim = { () throws(OperationalError) in reclaims.with { $0 += 1 } }
        try start(membership)
        defer { membership.stop() }
        channel.script.with { $0.isAway = true }
        blockUntil("the lease lapses") { !membership.lease.isFresh }
        channel.script.with { ($0.isAway, $0.others) = (false, [other(prefix: "/b")]) }
        blockUntil("the node is not ready") { readiness.reasons.map(\.cause) == [.settings] }
        #expect(!membership.lease.isFresh && reclaims.with { $0 } == 0)
        channel.script.with { $0.others = [] }
        blockUntil("the lease is renewed") { membership.lease.isFresh && readiness.reasons.isEmpty }
        #expect(reclaims.with { $0 } == 1)
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
        var view = NodeView(change: 0, generation: 0, others: 0, confirmed: nil)
        var isHinted = false
        /// No call returns anything.
        var isAway = false
        /// No look returns anything.
        var isBlind = false
        var others: [Node] = []
        /// The others do not renew their leases.
        var isKilled = false
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

    func enter(_ node: Node, unless differs: (Node) -> Bool) throws(OperationalError) -> NodeEntry {
        if script.with({ $0.isAway }) { try note("enter") }
        let others = script.with { script in
            // A second between two attempts.
            for index in script.others.indices {
                script.others[index].silence += script.isKilled ? 1_000 : -1
            }
            return script.others
        }
        let differing = others.filter { $0.isLive && differs($0) }
        return differing.isEmpty ? .entered(clock: try renew(node)) : .refused(differing)
    }

    func list(refused node: Node) throws(OperationalError) { try note("refused \(node.refusal)") }

    func others(of node: Node) throws(OperationalError) -> [Node] { script.with { $0.others } }

    func confirm(_ change: Int64, of node: Node) throws(OperationalError) { try note("confirm \(change)") }

    func look(as node: Node) throws(OperationalError) -> NodeView {
        try note("look")
        return script.with { $0.view }
    }

    func remove(_ node: Node) throws(OperationalError) { try note("remove") }
}
