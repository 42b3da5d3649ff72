import CountersignWire
import Glibc

/// The settings that all gateways over one store must have in common, by name, with their values as text. The
/// replay guard is one of them, but has its own type: ``NodeReplayGuard``.
package struct SharedSettings: Sendable, Equatable {
    package var values: [String: String]

    package init(_ values: [String: String] = [:]) {
        self.values = values.mapValues { $0.replacing("\n", with: " ") }
    }

    /// One line `NAME=VALUE` for each setting, sorted by name.
    package init(text: Substring) {
        values = [:]
        for line in text.split(separator: "\n") {
            guard let sign = line.firstIndex(of: "=") else { continue }
            values[String(line[..<sign])] = String(line[line.index(after: sign)...])
        }
    }

    package var text: String {
        values.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: "\n")
    }
}

/// The replay guard that a node uses: its kind and, if there can be several of that kind, which one.
package struct NodeReplayGuard: Sendable, Equatable {
    /// The name of the setting, under which ``NodeDifference`` reports the guard.
    package static let setting = "replay"

    package var kind: String
    /// A file's machine and number, or the identifier of a server. Nil for a guard in the store itself, and
    /// while the node uses no server.
    package var place: String?
    /// Whether the node cannot reach the guard now.
    package var isAway = false

    package init(kind: String, place: String? = nil, isAway: Bool = false) {
        (self.kind, self.place, self.isAway) = (kind, place, isAway)
    }

    private static let away = " away"

    /// Parses ``text``.
    package init(text: String) {
        let isAway = text.hasSuffix(NodeReplayGuard.away)
        let words = text.dropLast(isAway ? NodeReplayGuard.away.count : 0)
            .split(separator: " ", maxSplits: 1).map(String.init)
        self.init(kind: words.first ?? "", place: words.dropFirst().first, isAway: isAway)
    }

    package var text: String { title + (isAway ? NodeReplayGuard.away : "") }

    /// The guard's kind and place, for messages.
    package var title: String { [kind, place].compactMap(\.self).joined(separator: " ") }

    /// Whether one guard may accept a request that the other has seen.
    package func differs(from other: NodeReplayGuard) -> Bool {
        guard kind == other.kind else { return true }
        guard let place, let otherPlace = other.place else { return false }
        return place != otherPlace
    }
}

/// A setting that two nodes must have in common, but whose values differ.
package struct NodeDifference: Sendable, Equatable {
    package var setting: String
    package var value: String
    /// The name of the other node, and its value.
    package var node: String
    package var other: String

    package init(setting: String, value: String, node: String, other: String) {
        (self.setting, self.value, self.node, self.other) = (setting, value, node, other)
    }

    /// The text for a message of the node that has `value`.
    package var text: String { "--\(setting) is `\(value)` here and `\(other)` at node \(node)" }
}

extension Node {
    /// The settings whose values differ at the other node. Ignores a setting that only one of the two builds
    /// knows.
    package func differences(from other: Node) -> [NodeDifference] {
        var found: [NodeDifference] = []
        func add(_ setting: String, value: String, otherValue: String) {
            found.append(.init(setting: setting, value: value, node: other.name, other: otherValue))
        }
        let (own, others) = (NodeReplayGuard(text: replayGuard), NodeReplayGuard(text: other.replayGuard))
        if own.differs(from: others) {
            add(NodeReplayGuard.setting, value: own.title, otherValue: others.title)
        }
        for (name, value) in settings.values.sorted(by: { $0.key < $1.key }) {
            if let otherValue = other.settings.values[name], otherValue != value {
                add(name, value: value, otherValue: otherValue)
            }
        }
        return found
    }
}

/// A setting that has more than one value among the live nodes.
package struct NodeDisagreement: Sendable, Equatable {
    package var setting: String
    /// The names of the nodes by value, sorted by value.
    package var values: [(value: String, nodes: [String])]

    package static func == (left: NodeDisagreement, right: NodeDisagreement) -> Bool {
        left.text == right.text
    }

    package var text: String {
        "--\(setting): "
            + values.map { "`\($0.value)` at \($0.nodes.joined(separator: ", "))" }
            .joined(separator: "; ")
    }
}

extension NodeRoster {
    /// The settings that must be the same at all live nodes, but are not.
    package var disagreements: [NodeDisagreement] {
        let live = nodes.filter(\.isLive)
        let found = live.flatMap { node in live.flatMap { node.differences(from: $0).map(\.setting) } }
        return Set(found).sorted().map { setting in
            let values = Dictionary(grouping: live) { node in
                setting == NodeReplayGuard.setting
                    ? NodeReplayGuard(text: node.replayGuard).title : node.settings.values[setting] ?? ""
            }
            return NodeDisagreement(
                setting: setting,
                values: values.sorted { $0.key < $1.key }.map { ($0.key, $0.value.map(\.name)) })
        }
    }
}

/// Distinguishes live nodes from killed nodes whose leases have not lapsed yet: only a live node renews its
/// lease.
package struct NodeRenewals {
    private var silences: [String: Int64] = [:]

    package init() {}

    /// The first of the nodes that has renewed its lease since an earlier call.
    package mutating func firstRenewed(among nodes: [Node]) -> Node? {
        defer { for node in nodes { silences[node.id] = node.silence } }
        return nodes.first { node in silences[node.id].map { node.silence < $0 } ?? false }
    }

    /// Waits before the nodes are listed again. A lease is renewed every 200 ms at most.
    package static func pause() { usleep(50_000) }
}

/// The shared settings, as stored.
package struct SharedSettingsRecord: Sendable, Equatable {
    /// The values of the last start that no live node contradicted.
    package var current: SharedSettings
    /// Values that a command has announced. Nodes may start with them while other nodes still have the former
    /// ones.
    package var next: SharedSettings

    package init(current: SharedSettings = .init(), next: SharedSettings = .init()) {
        (self.current, self.next) = (current, next)
    }

    init(bytes: [UInt8]) {
        let parts = String(decoding: bytes, as: UTF8.self).split(
            separator: "\n\n", maxSplits: 1, omittingEmptySubsequences: false)
        self.init(
            current: SharedSettings(text: parts[0]),
            next: parts.count > 1 ? SharedSettings(text: parts[1]) : SharedSettings())
    }

    var bytes: [UInt8] { Array("\(current.text)\n\n\(next.text)".utf8) }

    /// Whether a command has announced this difference.
    package func permits(_ difference: NodeDifference) -> Bool {
        next.values[difference.setting].map { [difference.value, difference.other].contains($0) } ?? false
    }
}

extension Deployment {
    package func sharedSettings() throws(OperationalError) -> SharedSettingsRecord {
        try store.value(of: .sharedSettings).map { SharedSettingsRecord(bytes: $0) } ?? .init()
    }

    /// Records the settings of a server that starts beside the nodes `others`, except values that one of
    /// these does not have yet. Returns the recorded values that were replaced, by name.
    package func adopt(_ own: SharedSettings, beside others: [Node]) throws(OperationalError) -> [String:
        String]
    {
        let former = try sharedSettings()
        var record = former
        for (name, value) in own.values
        where !others.contains(where: { node in
            node.isLive && node.settings.values[name].map { $0 != value } ?? false
        }) {
            record.current.values[name] = value
            if record.next.values[name] == value { record.next.values[name] = nil }
        }
        if record != former { try store.set(.sharedSettings, to: record.bytes) }
        return former.current.values.filter { name, value in
            own.values[name].map { $0 != value } ?? false
        }
    }

    /// Lets nodes start with these values while live nodes have others.
    package func announce(_ next: SharedSettings) throws(OperationalError) {
        var record = try sharedSettings()
        record.next.values.merge(next.values) { $1 }
        try store.set(
            .sharedSettings, to: record.bytes,
            recording: auditDraft(
                for: .nodesChange, on: .deployment,
                details: next.values.sorted { $0.key < $1.key }.map { ($0.key, .string($0.value)) }))
        generation.advance()
    }
}

extension NodeStore {
    /// Finds a live node outside `own` that uses another replay guard. A starting node waits until the
    /// other node has renewed its lease, because a killed node does not count. For a serving node, another
    /// node that cannot reach its own guard does not count either: it could keep all others from theirs.
    package func rival(
        of guarding: NodeReplayGuard, besides own: Set<String>, isStarting: Bool
    ) throws(OperationalError) -> Node? {
        var renewals = NodeRenewals()
        while true {
            let others = try nodes().nodes.filter { node in
                let other = NodeReplayGuard(text: node.replayGuard)
                return node.isLive && !own.contains(node.id) && other.differs(from: guarding)
                    && (isStarting || !other.isAway)
            }
            if others.isEmpty || !isStarting { return others.first }
            if let other = renewals.firstRenewed(among: others) { return other }
            NodeRenewals.pause()
        }
    }
}
