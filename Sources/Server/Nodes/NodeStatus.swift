import CountersignAuthority
import CountersignWire

/// Reports a node's state: to the log when it changes, and to ``Readiness``. Confined to the thread that
/// follows the other nodes.
final class NodeStatus {
    private let readiness: Readiness
    private let log: EventLog?
    private var isSilent = false
    private var isLapsed = false
    private var isClockWrong = false
    private var conflict: String?
    private var differences: String?

    init(_ readiness: Readiness, log: EventLog?) {
        self.readiness = readiness
        self.log = log
    }

    /// The store was heard, and the lease is renewed.
    func didHear(isClockRight: Bool, of node: Node) {
        if isSilent { note("the store is heard again: change \(node.applied)") }
        if conflict != nil { note("no live node has another value now") }
        (isSilent, isLapsed, conflict) = (false, false, nil)
        readiness.clear(.nodes)
        readiness.clear(.settings)
        if isClockRight {
            if isClockWrong { note("the clock agrees with the store's again") }
            readiness.clear(.clock)
        } else {
            let detail = "the clock is \(node.clockOffset) ms ahead of the store's"
            if !isClockWrong { note(detail) }
            readiness.set(.clock, detail: detail)
        }
        isClockWrong = !isClockRight
    }

    /// Call at least every few hundred milliseconds while the store is away.
    func didFail(_ error: OperationalError, isFresh: Bool) {
        if !isSilent { note("the store is not heard: \(error.message)") }
        isSilent = true
        guard !isFresh else { return }
        if !isLapsed { note("the lease has lapsed: requests are refused") }
        isLapsed = true
        readiness.set(.nodes, detail: "the store is not heard, and requests are refused: \(error.message)")
    }

    /// The lease has lapsed, and a live node has another value of a setting that all nodes must have in
    /// common.
    func didConflict(_ text: String) {
        let detail = "requests are refused: \(text)"
        if conflict != detail { note(detail) }
        conflict = detail
        readiness.clear(.nodes)
        readiness.set(.settings, detail: detail)
    }

    /// Warns of settings that differ at other live nodes, and of refused starts. Neither keeps this node from
    /// serving.
    func didCompare(_ node: Node, with others: [Node]) {
        let found = others.flatMap { other in
            other.isLive
                ? node.differences(from: other).map(\.text)
                : other.refusal.isEmpty ? [] : ["a start of node \(other.name) was refused: \(other.refusal)"]
        }
        let text = found.isEmpty ? nil : found.joined(separator: "; ")
        readiness.setPending(.settings, detail: text)
        guard text != differences else { return }
        note(text ?? "all live nodes have the same settings")
        differences = text
    }

    /// Another node has migrated the store, and this build can use the schema.
    func didVerify(_ level: Int64) { note("the store is of level \(level) of the schema now, and goes on") }

    private func note(_ text: String) { log?.note(subject: "nodes", message: text) }
}
