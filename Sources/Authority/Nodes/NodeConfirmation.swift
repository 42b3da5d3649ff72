import CountersignWire
import Glibc

extension NodeStore {
    /// Milliseconds that a change may wait for the nodes beyond their leases.
    private static var margin: Int64 { 2_000 }

    /// Waits until every live node follows all changes that were committed before the call. Throws if a node
    /// goes on without doing so; the changes are durable then.
    package func awaitNodes() throws(OperationalError) {
        let first = try nodes()
        var late = first.unconfirmed(of: first.change)
        let end = NodeLease.now + (late.map(\.lease).max() ?? 0) + Self.margin
        while let node = late.first {
            guard NodeLease.now < end else {
                throw OperationalError(
                    .unreachable, message: "changed, but node \(node.name) has not confirmed the change")
            }
            usleep(5_000)
            late = try nodes().unconfirmed(of: first.change)
        }
    }

    /// Waits until the leases of nodes that are gone have lapsed. Throws if a node renews its lease
    /// meanwhile.
    package func requireNoLiveNodes() throws(OperationalError) {
        var live = try nodes().nodes.filter(\.isLive)
        while !live.isEmpty {
            usleep(100_000)
            let later = try nodes().nodes.filter(\.isLive)
            if let node = later.first(where: { node in
                live.contains { $0.id == node.id && $0.silence > node.silence }
            }) {
                throw OperationalError(
                    .failed, message: "node \(node.name) uses the store; stop all gateways first")
            }
            live = later
        }
    }
}
