import CountersignWire
import Glibc
import Synchronization

/// Until when this process may judge sessions by what it has in memory. Past that time the other nodes
/// take a session's end for known everywhere, and this one may not know it.
///
/// The clock goes on while the process is stopped or the machine sleeps.
package final class NodeLease: Sendable {
    private let end = Atomic<Int64>(.min)

    package init() {}

    /// `end` is a time of ``now``.
    package func renew(until end: Int64) { self.end.store(end, ordering: .releasing) }

    package func lapse() { end.store(.min, ordering: .releasing) }

    package var isFresh: Bool { NodeLease.now < end.load(ordering: .acquiring) }

    /// Call after the session was looked up: it was looked up while the lease lasted.
    package func requireFresh() throws(OperationalError) {
        guard isFresh else {
            throw OperationalError(
                .unreachable,
                message: "the store has not been heard: a session may have ended at another node")
        }
    }

    /// Milliseconds of a clock that is never set.
    package static var now: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
    }
}
