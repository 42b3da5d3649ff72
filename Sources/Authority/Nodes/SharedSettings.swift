import CountersignWire
import Glibc

/// The settings that all gateways over one store must have in common, by name, with their values as text.
/// The replay guard is one of them, and has a type of its own: ``NodeReplayGuard``.
package struct SharedSettings: Sendable, Equatable {
    package var values: [String: String]

    package init(_ values: [String: String] = [:]) {
        self.values = values.mapValues { $0.replacing("\n", with: " ") }
    }

    /// A line `NAME=VALUE` for each, in the order of the names.
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

/// The replay guard that a node asks: its kind and, where the kind may be in several places, which one.
package struct NodeReplayGuard: Sendable, Equatable {
    /// The name under which ``NodeDifference`` reports it: that of the setting.
    package static let setting = "replay"

    package var kind: String
    /// A file's machine and number, or the identifier of a server. Nil for a guard in the store itself, and
    /// while a node uses no server.
    package var place: String?
    /// Whether the node does not reach the guard now.
    package var isAway = false

    package init(kind: String, place: String? = nil, isAway: Bool = false) {
        (self.kind, self.place, self.isAway) = (kind, place, isAway)
    }

    private static let away = " away"

    /// As ``text``.
    package init(text: String) {
        let isAway = text.hasSuffix(NodeReplayGuard.away)
        let words = text.dropLast(isAway ? NodeReplayGuard.away.count : 0)
            .split(separator: " ", maxSplits: 1).map(String.init)
        self.init(kind: words.first ?? "", place: words.dropFirst().first, isAway: isAway)
    }

    package var text: String { title + (isAway ? NodeReplayGuard.away : "") }

    /// For messages: which guard it is.
    package var title: String { [kind, place].compactMap(\.self).joined(separator: " ") }

    /// Whether a request that one of them has seen, the other may accept.
    package func differs(from other: NodeReplayGuard) -> Bool {
        guard kind == other.kind else { return true }
        guard let place, let otherPlace = other.place else { return false }
        return place != otherPlace
    }
}

/// A value that two nodes should have in common and do not.
package struct NodeDifference: Sendable, Equatable {
    package var setting: String
    package var value: String
    /// The name of the other node, and what it has.
    package var node: String
    package var other: String

    package init(setting: String, value: String, node: String, other: String) {
        (self.setting, self.value, self.node, self.other) = (setting, value, node, other)
    }

    /// For a message of the node that has `value`.
    package var text: String { "--\(setting) is `\(value)` here and `\(other)` at node \(node)" }
}

extension Node {
    /// What the other node has differently. A setting that only one of the two builds knows is no difference.
    package func differences(from other: Node) -> [NodeDifference] {
        var found: [NodeDifference] = []
        func add(_ setting: String, _ value: String, _ otherValue: String) {
            found.append(.init(setting: setting, value: value, node: other.name, other: otherValue))
        }
        let (own, others) = (NodeReplayGuard(text: replayGuard), NodeReplayGuard(text: other.replayGuard))
        if own.differs(from: others) { add(NodeReplayGuard.setting, own.title, others.title) }
        for (name, value) in settings.values.sorted(by: { $0.key < $1.key }) {
            if let otherValue = other.settings.values[name], otherValue != value {
                add(name, value, otherValue)
            }
        }
        return found
    }
}

/// A setting of which live nodes have more than one value.
package struct NodeDisagreement: Sendable, Equatable {
    package var setting: String
    /// The names of the nodes by their value, in the order of the values.
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
    /// The settings that live nodes should have in common and do not.
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

/// Tells live nodes from nodes that were killed, whose leases have not lapsed yet: only a live one renews its
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

/// The shared settings as the store has them.
package struct SharedSettingsRecord: Sendable, Equatable {
    /// The values of the last start that no live node contradicted.
    package var current: SharedSettings
    /// Values that a command has announced: nodes may start with them beside nodes that have the former ones.
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

    /// Whether a command has announced the difference.
    package func permits(_ difference: NodeDifference) -> Bool {
        next.values[difference.setting].map { [difference.value, difference.other].contains($0) } ?? false
    }
}

extension Deployment {
    package func sharedSettings() throws(OperationalError) -> SharedSettingsRecord {
        try store.value(of: .sharedSettings).map { SharedSettingsRecord(bytes: $0) } ?? .init()
    }

    /// Records the values of a server that starts beside the nodes `others`, except those that one of these
    /// does not have yet. Returns the values that the record had instead, by name.
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

    /// Lets nodes start with these values beside live nodes that have others.
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
    /// A live node that uses another replay guard, apart from the nodes in `own`; nil if there is none. A
    /// node that starts waits until the other one has renewed its lease: one that was killed does not count.
    /// For a node that serves, another one that does not reach its guard does not count either: it could keep
    /// all others from theirs.
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
