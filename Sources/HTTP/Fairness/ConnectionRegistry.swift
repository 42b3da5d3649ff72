import CountersignMemory
import Synchronization

/// What the latest request of a connection has proved. When connections are scarce, those that proved less
/// are evicted first.
enum ConnectionProofLevel: Int, Comparable, Sendable, CaseIterable {
    case unproven, release, session

    static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

extension CallerProof {
    var proofLevel: ConnectionProofLevel {
        switch self {
        case .release: .release
        case .session: .session
        }
    }
}

/// The state that the listeners of one port share: the number of open connections over all loops, the
/// parties that they count to, and the choice of those to evict.
package final class ConnectionRegistry: Sendable {
    enum Admission { case within, over, farOver }

    /// The number of connections beyond `limit` that are accepted, until others are evicted or to be sent a
    /// refusal; any further connection is closed at once.
    package static func reserve(for limit: Int) -> Int { min(64, max(4, limit / 8)) }

    private let count = Atomic<Int>(0)
    package let addresses: AddressTable
    let accounts = AccountTable()
    let held = HeldBodyBudget()
    package let counters = EngineCounters()

    package init(addresses: AddressTable = AddressTable()) { self.addresses = addresses }

    func add(limit: Int) -> Admission {
        let count = count.add(1, ordering: .relaxed).newValue
        if count <= limit { return .within }
        if count <= limit + ConnectionRegistry.reserve(for: limit) { return .over }
        remove()
        return .farOver
    }

    /// Open connections.
    package var current: Int { count.load(ordering: .relaxed) }

    func remove() { count.subtract(1, ordering: .relaxed) }

    /// Undoes a ``remove()`` that was called in advance for a connection that then was not evicted.
    func restore() { count.add(1, ordering: .relaxed) }

    /// Bytes of held bodies.
    package var heldBytes: Int { held.current }

    // MARK: Making room

    private let listeners = Locked<[Listener]>([])
    private let unproven = Atomic<Int>(0)
    private let isSearching = Atomic<Bool>(false)
    /// The second in which the last search on the other loops found no connection to evict.
    private let failed = Atomic<Int64>(-2)

    func register(_ listener: Listener) { listeners.with { $0.append(listener) } }

    func unregister(_ listener: Listener) { listeners.with { $0.removeAll { $0 === listener } } }

    func countUnproven(_ change: Int) { unproven.add(change, ordering: .relaxed) }

    /// Whether unproven connections are more than half of the reserve beyond the limit.
    func isCrowded(limit: Int) -> Bool {
        unproven.load(ordering: .relaxed) > ConnectionRegistry.reserve(for: limit) / 2
    }

    /// Whether so many connections are open that no further proven connection may exceed the limit.
    func isFull(limit: Int) -> Bool { current > limit + ConnectionRegistry.reserve(for: limit) / 2 }

    /// The listener whose loop has the address with the most unproven connections; `listener` itself unless
    /// another has more.
    func mostCrowded(from listener: Listener) -> Listener {
        listeners.with { listeners in
            listeners.reduce(listener) { $1.mostUnproven > $0.mostUnproven ? $1 : $0 }
        }
    }

    /// Searches the other loops, one after the other, for a connection to evict for one of `standing`; only
    /// one search runs at a time. False if there is no other loop, or if a search failed in this second or
    /// the one before.
    func makeRoomElsewhere(than listener: Listener, for standing: ConnectionProofLevel, now: Int64) -> Bool {
        guard now > failed.load(ordering: .relaxed) + 1 else { return false }
        let others = listeners.with { $0.filter { $0 !== listener } }
        guard !others.isEmpty else { return false }
        if !isSearching.exchange(true, ordering: .acquiring) { ask(others[...], for: standing) }
        return true
    }

    private func ask(_ listeners: ArraySlice<Listener>, for standing: ConnectionProofLevel) {
        guard let listener = listeners.first else {
            failed.store(EventLoop.monotonicSeconds(), ordering: .relaxed)
            return isSearching.store(false, ordering: .releasing)
        }
        listener.loop.perform { [self] in
            guard !listener.evictForProven(standing) else {
                return isSearching.store(false, ordering: .releasing)
            }
            ask(listeners.dropFirst(), for: standing)
        }
    }
}
