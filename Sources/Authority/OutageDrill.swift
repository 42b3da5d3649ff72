import CountersignWire
import Synchronization

/// A switch by which an operator has a running server behave as if something that it depends on were away. It
/// ends by itself, at a time of ``NodeLease/now``, whatever becomes of the threads that watch it. Source:
/// docs/operate/drill.md.
package final class OutageDrill: Sendable {
    /// When the drill ends; zero while no drill runs.
    private let end = Atomic<Int64>(0)
    private let clock: @Sendable () -> Int64

    /// `clock` gives milliseconds, as ``NodeLease/now`` does.
    package init(clock: @escaping @Sendable () -> Int64 = { NodeLease.now }) { self.clock = clock }

    package var isOn: Bool {
        let end = end.load(ordering: .relaxed)
        return end != 0 && clock() < end
    }

    package func run(until end: Int64) { self.end.store(end, ordering: .relaxed) }

    package func stop() { end.store(0, ordering: .relaxed) }

    /// Fails as a store does that cannot be reached; `name` is the store's.
    package func requireOff(_ name: String) throws(OperationalError) {
        guard isOn else { return }
        throw OperationalError(.unreachable, message: "\(name): away, for `countersign drill store`")
    }
}
