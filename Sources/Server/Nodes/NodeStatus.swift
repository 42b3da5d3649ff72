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
    private var hasStrangers = false

    init(_ readiness: Readiness, log: EventLog?) {
        self.readiness = readiness
        self.log = log
    }

    /// The store was heard, and the lease is renewed.
    func didHear(isClockRight: Bool, of node: Node) {
        if isSilent { note("the store is heard again: change \(node.applied)") }
        (isSilent, isLapsed) = (false, false)
        readiness.clear(.nodes)
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

    /// `strangers` are live nodes with another replay guard: a request that was seen here can be replayed
    /// there.
    func didCount(strangers: Int64) {
        guard strangers > 0 || hasStrangers else { return }
        if strangers == 0 {
            readiness.clear(.replayGuards)
        } else {
            let detail =
                "\(strangers) nodes have another replay guard: a request that one has seen, another accepts"
            if !hasStrangers { note(detail) }
            readiness.set(.replayGuards, detail: detail)
        }
        hasStrangers = strangers > 0
    }

    /// Another node has migrated the store, and this build can use the schema.
    func didVerify(_ level: Int64) { note("the store is of level \(level) of the schema now, and goes on") }

    private func note(_ text: String) { log?.note(subject: "nodes", message: text) }
}
