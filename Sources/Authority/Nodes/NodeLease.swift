import CountersignWire
import Glibc
import Synchronization

/// Until when this process may judge requests by what it has in memory. Past that time the other nodes take
/// the end of a session, a retirement or a change of policy for known everywhere, and this one may not know
/// it.
///
/// Ask before something is looked up. What is found then is at least as new as what was acknowledged when
/// the lease began to last, since a node counts a lease as its own only after it has looked at the store.
/// Asked afterwards alone, the lease may have begun between the two, and the finding be older.
///
/// The clock goes on while the process is stopped or the machine sleeps.
package final class NodeLease: Sendable {
    private let end = Atomic<Int64>(.min)

    package init() {}

    /// `end` is a time of ``now``.
    package func renew(until end: Int64) { self.end.store(end, ordering: .releasing) }

    package func lapse() { end.store(.min, ordering: .releasing) }

    package var isFresh: Bool { NodeLease.now < end.load(ordering: .acquiring) }

    package func requireFresh() throws(OperationalError) {
        guard isFresh else {
            throw OperationalError(
                .unreachable,
                message: "the lease has lapsed: another node may have changed a session, a key or a policy")
        }
    }

    /// Milliseconds of a clock that is never set.
    package static var now: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
    }
}
