import CountersignAuthority
import CountersignGate
import CountersignReplay
import CountersignWire

/// A replay guard that refuses what it would admit while a drill is on, as one does that cannot be reached.
struct DrilledReplayGuard<Inner: ReplayGuard>: ReplayGuard {
    private let inner: Inner
    private let drill: OutageDrill

    init(_ inner: Inner, by drill: OutageDrill) { (self.inner, self.drill) = (inner, drill) }

    func insert(_ entry: ReplayEntry) async throws(Refusal) {
        try requireOff()
        try await inner.insert(entry)
    }

    func insertIfReady(_ entry: ReplayEntry) throws(Refusal) -> Bool {
        try requireOff()
        return try inner.insertIfReady(entry)
    }

    func lookUp(_ entry: ReplayEntry) throws(Refusal) { try inner.lookUp(entry) }

    func prefetch(_ entry: ReplayEntry) -> ReplayFingerprint? { inner.prefetch(entry) }

    private func requireOff() throws(Refusal) {
        guard drill.isOn else { return }
        throw Refusal(
            .unavailable, detail: "replay guard: away, for `countersign drill replay`", retryAfter: 1)
    }
}

extension ReplayBackend {
    func drilled(by drill: OutageDrill) -> any ReplayGuard {
        guard let shared else { return DrilledReplayGuard(file, by: drill) }
        return ReplayBackend.wrapped(shared, by: drill)
    }

    private static func wrapped(_ shared: some SharedReplayGuard, by drill: OutageDrill) -> any ReplayGuard {
        DrilledReplayGuard(shared, by: drill)
    }
}
