import CountersignMemory
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
///
/// Of a store that only this process and its commands use, it lasts until that store is found to be an
/// earlier copy (``FollowedHead``).
package final class NodeLease: Sendable {
    private let end: Atomic<Int64>
    private let fault = Locked<OperationalError?>(nil)

    /// One that has not begun.
    package init() { end = Atomic(.min) }

    private init(until end: Int64) { self.end = Atomic(end) }

    /// One that lasts until ``end(for:)``.
    package static func lasting() -> NodeLease { NodeLease(until: .max) }

    /// `end` is a time of ``now``. Does nothing after ``end(for:)``.
    package func renew(until end: Int64) {
        fault.with { if $0 == nil { self.end.store(end, ordering: .releasing) } }
    }

    /// Ends it for good.
    package func end(for error: OperationalError) {
        fault.with { fault in
            fault = error
            lapse()
        }
    }

    package func lapse() { end.store(.min, ordering: .releasing) }

    package var isFresh: Bool {
        let end = end.load(ordering: .acquiring)
        return end == .max || NodeLease.now < end
    }

    package func requireFresh() throws(OperationalError) {
        guard isFresh else {
            if let fault = fault.with({ $0 }) { throw fault }
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
