import CountersignWire

/// One gateway of several that share a store, as the store knows it. All times are by the store's clock.
package struct Node: Sendable, Equatable {
    /// Drawn at each start of a process.
    package var id: String
    /// The machine's name and the address that clients connect to, for people.
    package var name: String
    /// The replay guard that the node asks; equal for nodes that share one.
    package var replayGuard: String
    /// How long the node may go on without being seen, in milliseconds.
    package var lease: Int64
    /// How long ago it was seen, in milliseconds.
    package var silence: Int64
    /// The number of the last change that it follows.
    package var applied: Int64
    /// How far its clock is ahead of the store's, in milliseconds.
    package var clockOffset: Int64
    /// The level of its build's schema; the store knows it of the nodes that it lists.
    package var level: Int64
    /// Nil for a node of a version that says nothing of it.
    package var masterKey: NodeMasterKey?
    /// The settings that it must have in common with the other nodes.
    package var settings: SharedSettings
    /// Why its start was refused; empty if it was not. A refused node serves no requests.
    package var refusal = ""

    package init(
        id: String, name: String, replayGuard: String, lease: Int64, silence: Int64 = 0, applied: Int64 = -1,
        clockOffset: Int64 = 0, level: Int64 = 0, masterKey: NodeMasterKey? = nil,
        settings: SharedSettings = .init(), refusal: String = ""
    ) {
        (self.id, self.name, self.replayGuard, self.lease) = (id, name, replayGuard, lease)
        (self.silence, self.applied, self.clockOffset) = (silence, applied, clockOffset)
        (self.level, self.masterKey) = (level, masterKey)
        (self.settings, self.refusal) = (settings, refusal)
    }

    /// Whether it may still serve sessions.
    package var isLive: Bool { refusal.isEmpty && silence < lease }

    /// Whether it has entered but does not serve yet. No change waits for it, because it reads the store
    /// afterwards.
    package var isStarting: Bool { applied == .max }
}

/// The number of the last change that nodes must follow, and the nodes, read at one moment.
package struct NodeRoster: Sendable, Equatable {
    package var change: Int64
    package var nodes: [Node]

    package init(change: Int64 = 0, nodes: [Node] = []) { (self.change, self.nodes) = (change, nodes) }

    /// The live nodes that do not follow that change yet.
    package func unconfirmed(of change: Int64) -> [Node] {
        nodes.filter { $0.isLive && $0.applied < change }
    }
}

/// The gateways that share a store. A change of what they keep in memory has a number: the changes of
/// sessions and the changes of the store's generation, added up. Numbers are free of gaps, in the order of
/// the commits.
package protocol NodeStore: Sendable {
    func nodes() throws(OperationalError) -> NodeRoster
}

extension NodeStore {
    /// A store that one machine alone can open has no nodes.
    package func nodes() throws(OperationalError) -> NodeRoster { NodeRoster() }
}

/// What a node reads at each look at the store.
package struct NodeView: Sendable, Equatable {
    /// The number of the last change that nodes must follow.
    package var change: Int64
    /// Counts those among them that are not of sessions.
    package var generation: Int64
    /// The other live nodes.
    package var others: Int64
    /// The number of the last change that all of them follow; nil without live nodes.
    package var confirmed: Int64?
    /// The level of the store's schema.
    package var level: Int64

    package init(
        change: Int64, generation: Int64, others: Int64, confirmed: Int64?, level: Int64 = 0
    ) {
        (self.change, self.generation) = (change, generation)
        (self.others, self.confirmed) = (others, confirmed)
        self.level = level
    }
}

/// The result of an attempt to enter a node.
package enum NodeEntry: Sendable, Equatable {
    /// The store's clock, in Unix milliseconds.
    case entered(clock: Int64)
    /// The live nodes that kept the node from entering.
    case refused([Node])
}

/// A node's own connection to the store. One thread uses it.
package protocol NodeChannel: AnyObject {
    /// Waits until the store hints at a change (true), `descriptor` has input, or the time is over. Connects
    /// if there is no connection; then a hint may have been lost.
    func wait(milliseconds: Int, alongside descriptor: Int32) throws(OperationalError) -> Bool
    /// Extends the node's lease, or enters the node; returns the store's clock, in Unix milliseconds.
    func renew(_ node: Node) throws(OperationalError) -> Int64
    /// Enters the node, unless `differs` returns true for a live node. No other node can enter at the same
    /// time.
    func enter(_ node: Node, unless differs: (Node) -> Bool) throws(OperationalError) -> NodeEntry
    /// Lists a node whose start was refused, for some minutes.
    func list(refused node: Node) throws(OperationalError)
    /// The other nodes.
    func others(of node: Node) throws(OperationalError) -> [Node]
    /// Sets the number of the last change that the node follows.
    func confirm(_ change: Int64, of node: Node) throws(OperationalError)
    func look(as node: Node) throws(OperationalError) -> NodeView
    /// Removes the node.
    func remove(_ node: Node) throws(OperationalError)
}
