import CountersignAuthority
import CountersignGate
import CountersignMemory
import CountersignSeal
import CountersignThreads
import CountersignWire
import Glibc
import Synchronization

/// This gateway as one of several over a store: it follows the others' changes, tells them which it follows,
/// and has its own changes wait until the others follow them. Source: docs/decisions/0072-nodes.md.
///
/// Safe to share: one thread has the channel and the node's state, and what others touch has locks.
final class NodeMembership: @unchecked Sendable {
    /// What follows the store.
    struct Followers {
        var deployment: Deployment
        var keys: ReleaseKeyDirectory
        var sessions: SessionDirectory
        /// The store's schema.
        var schema: any SchemaStore
    }

    /// For metrics.
    struct Figures: Sendable, Equatable {
        var change: Int64 = 0
        var others: Int64 = 0
        var clockOffset: Int64 = 0
        /// Changes that were found without a notification.
        var missedHints = 0
    }

    /// Milliseconds between two looks at the other nodes while changes wait for them.
    private static let shortTurn: Int64 = 3
    /// Milliseconds between two attempts to reach the store.
    private static let retryTurn = 100
    /// Milliseconds by which clocks may differ.
    private static let mostClockOffset: Int64 = 1_000
    /// Milliseconds that a change waits at least for the other nodes, whose leases may be longer.
    private static let leastWait: Int64 = 6_000

    let lease: NodeLease
    private let channel: any NodeChannel
    private let policy: OutagePolicy
    private let status: NodeStatus
    private let handOver: HandoverState
    private let clock: TrustedClock
    private let wake: WakeSocket
    private let waiting = ConfirmationQueue()
    private let isStopping = Atomic(false)
    private let shownFigures = Locked(Figures())
    private let thread = Locked<WorkerThreads?>(nil)

    /// Set before the node enters.
    var terms = NodeTerms()
    private var followers: Followers?
    private var node: Node
    private var seenGeneration: Int64?
    /// The level of the schema that was verified last.
    private var seenLevel: Int64?
    /// When the lease is to be renewed.
    private var due: Int64 = .min
    /// Whether the node has had a lease.
    private var hasServed = false
    /// Whether the last look succeeded; a node that cannot follow does not renew its lease.
    private var isFollowing = true

    init(
        _ channel: any NodeChannel, named name: String, lease: NodeLease, policy: OutagePolicy,
        status: NodeStatus, handOver: HandoverState, clock: TrustedClock
    ) throws(OperationalError) {
        (self.channel, self.lease, self.policy, self.status, self.handOver) = (
            channel, lease, policy, status, handOver
        )
        self.clock = clock
        node = Node(
            id: Hex.encode(SystemRandom().bytes(8).span), name: name, replayGuard: "", lease: policy.lease)
        wake = try WakeSocket()
    }

    var figures: Figures { shownFigures.with { $0 } }

    /// Random, and new at each start of a process.
    var id: String { node.id }

    /// The ids of this node and of the one that it replaces.
    var ownIDs: Set<String> { Set([node.id, terms.predecessor].compactMap(\.self)) }

    /// Enters the node before it serves, or enters it again; no change waits for it. While a live node has
    /// another value of a setting that all nodes must have in common, lists the refused start and throws.
    func enter() throws(OperationalError) {
        (node.settings, node.replayGuard) = (terms.settings, terms.replayGuard())
        var starting = node
        starting.applied = .max
        let record = try terms.record()
        var renewals = NodeRenewals()
        while case .refused(let others) = try channel.enter(
            starting, unless: { terms.conflict(of: starting, with: $0, under: record) })
        {
            if let other = renewals.firstRenewed(among: others) {
                starting.refusal = starting.differences(from: other).map(\.text).joined(separator: "; ")
                try channel.list(refused: starting)
                throw OperationalError(.failed, message: NodeTerms.message(starting.refusal))
            }
            NodeRenewals.pause()
        }
    }

    /// Makes the node follow all changes, and starts the thread.
    func start(_ followers: Followers) throws(OperationalError) {
        self.followers = followers
        (node.settings, node.replayGuard) = (terms.settings, terms.replayGuard())
        if let conflict = try turn(isHinted: true) {
            throw OperationalError(.failed, message: NodeTerms.message(conflict))
        }
        let started = try WorkerThreads(purpose: "to follow other nodes") { [self] in run() }
        thread.with { $0 = started }
    }

    /// Ends the thread and removes the node. Call once no change is made any more.
    func stop() {
        isStopping.store(true, ordering: .releasing)
        wake.send()
        thread.with { $0 }?.join()
        lease.lapse()
        try? channel.remove(node)
    }

    /// Waits until every live node follows the changes that were committed before the call. Refuses with
    /// `unavailable` if that cannot be known in time.
    func settle() async throws(Refusal) {
        let end = NodeLease.now + max(policy.lease + 1_000, NodeMembership.leastWait)
        try await waiting.wait(until: end) { wake.send() }
    }

    // MARK: The thread

    private func run() {
        while !isStopping.load(ordering: .acquiring) {
            do throws(OperationalError) {
                let isHinted = try channel.wait(milliseconds: Int(patience), alongside: wake.descriptor)
                wake.clear()
                if let conflict = try turn(isHinted: isHinted) {
                    waiting.refuse(waitingUntil: NodeLease.now)
                    status.didConflict(conflict)
                }
            } catch {
                isFollowing = false
                if policy == .closed || followers?.deployment.head.isBehind == true { lease.lapse() }
                status.didFail(error, isFresh: lease.isFresh)
                waiting.refuse(waitingUntil: NodeLease.now)
                wake.wait(milliseconds: NodeMembership.retryTurn)
                wake.clear()
            }
        }
        waiting.close()
    }

    private var interval: Int64 { min(1_000, policy.lease / 5) }

    private var patience: Int64 {
        let rest = max(0, min(due - NodeLease.now, interval))
        return waiting.isEmpty ? rest : min(rest, NodeMembership.shortTurn)
    }

    /// Renews the lease if it is due, and checks the store if there is a reason to. Returns the conflict
    /// that prevents the node from entering again after its lease has lapsed, or nil without a conflict.
    private func turn(isHinted: Bool) throws(OperationalError) -> String? {
        let begun = NodeLease.now
        let isDue = begun >= due
        guard isDue || isHinted || !waiting.isEmpty else { return nil }
        if !isFollowing {
            try look(isHinted: true, isDue: isDue)
            isFollowing = true
        }
        if isDue, let conflict = try renew() {
            due = begun + interval
            return conflict
        }
        // After the renewal: what was committed before it, and did not wait for this node, is seen now.
        try look(isHinted: isHinted, isDue: isDue)
        guard isDue else { return nil }
        due = begun + interval
        // Earlier than the store's end of the lease, so that no difference of the clocks' rates matters.
        lease.renew(until: begun + node.lease - node.lease / 10)
        hasServed = true
        status.didHear(isClockRight: abs(node.clockOffset) <= NodeMembership.mostClockOffset, of: node)
        status.didCompare(node, with: try channel.others(of: node))
        return nil
    }

    /// After the lease has lapsed, nodes may have started with other values, and the deployment may have used
    /// another replay guard.
    private func renew() throws(OperationalError) -> String? {
        node.masterKey = followers?.deployment.nodeMasterKey()
        node.replayGuard = terms.replayGuard()
        let (before, asked) = TrustedClock.machine()
        let stored: Int64
        if lease.isFresh {
            stored = try channel.renew(node)
        } else {
            let record = try terms.record()
            switch try channel.enter(node, unless: { terms.conflict(of: node, with: $0, under: record) }) {
            case .entered(let clock): stored = clock
            case .refused(let others):
                return others.flatMap { node.differences(from: $0).map(\.text) }.joined(separator: "; ")
            }
            if hasServed { try terms.reclaim() }
        }
        let (after, uptime) = TrustedClock.machine()
        // The store read its clock between the two readings; the statement's deadline keeps the error within
        // the tolerance.
        clock.hear(storeTime: stored, at: asked + (uptime - asked) / 2)
        // The store read its clock at some time between these two.
        node.clockOffset = stored < before ? before - stored : min(after - stored, 0)
        return nil
    }

    private func look(isHinted: Bool, isDue: Bool) throws(OperationalError) {
        guard let followers else { return }
        waiting.beginView()
        let view = try channel.look(as: node)
        // Before anything is read that would be followed. Throws for an earlier copy of the store.
        if isHinted || isDue || view.change != node.applied { try followers.deployment.followStore() }
        if view.level != seenLevel { try verify(view.level, of: followers.schema) }
        if view.generation != seenGeneration {
            followers.deployment.generation.advance()
            // Before what is sealed under another master key is read, and before the node confirms that it
            // follows. Throws if the node does not have the key.
            try followers.deployment.masterKey.look()
            try followers.keys.refreshIfChanged()
            try followers.sessions.refreshIfChanged()
        } else if view.change != node.applied {
            try followers.sessions.followChanges()
        }
        seenGeneration = view.generation
        let isNew = view.change != node.applied
        if isNew {
            try channel.confirm(view.change, of: node)
            node.applied = view.change
        }
        handOver.hasOtherNodes = view.others > 0
        show(view, isMissed: isNew && !isHinted && waiting.isEmpty)
        waiting.resume(after: view)
        waiting.refuse(waitingUntil: NodeLease.now)
    }

    /// Requests are refused at once where this build cannot use the schema, which another node has migrated.
    private func verify(_ level: Int64, of schema: any SchemaStore) throws(OperationalError) {
        do {
            try schema.verifySchema()
        } catch {
            lease.lapse()
            throw error
        }
        if seenLevel != nil { status.didVerify(level) }
        seenLevel = level
    }

    private func show(_ view: NodeView, isMissed: Bool) {
        shownFigures.with { figures in
            (figures.change, figures.others) = (view.change, view.others)
            figures.clockOffset = node.clockOffset
            if isMissed { figures.missedHints += 1 }
        }
    }
}
