import CountersignMemory
import Synchronization

/// What a connection's latest request has proved. Where connections are short, those that proved less give way first.
enum ConnectionStanding: Int, Comparable, Sendable, CaseIterable {
    case unproven, release, session

    static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

extension CallerProof {
    var standing: ConnectionStanding {
        switch self {
        case .release: .release
        case .session: .session
        }
    }
}

/// What the listeners of one port share: how many connections are open over all loops, whose they are, and
/// which give way.
package final class ConnectionRegistry: Sendable {
    enum Admission { case within, over, farOver }

    /// Connections over the limit that are let in, until others have given way or to be told; beyond them
    /// there is only closing.
    package static func reserve(for limit: Int) -> Int { min(64, max(4, limit / 8)) }

    private let count = Atomic<Int>(0)
    package let addresses: AddressTable
    let accounts = AccountTable()
    let held = HeldBytes()
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

    /// Undoes a ``remove()`` that was ahead of the connection's end.
    func restore() { count.add(1, ordering: .relaxed) }

    /// Bytes of bodies that are held.
    package var heldBytes: Int { held.current }

    // MARK: Making room

    private let listeners = Locked<[Listener]>([])
    private let unproven = Atomic<Int>(0)
    private let isSearching = Atomic<Bool>(false)
    /// The second in which no proven connection was idle.
    private let failed = Atomic<Int64>(-2)

    func register(_ listener: Listener) { listeners.with { $0.append(listener) } }

    func unregister(_ listener: Listener) { listeners.with { $0.removeAll { $0 === listener } } }

    func countUnproven(_ change: Int) { unproven.add(change, ordering: .relaxed) }

    /// Whether strangers hold more than the places over the limit in which newcomers may prove something.
    func isCrowded(limit: Int) -> Bool {
        unproven.load(ordering: .relaxed) > ConnectionRegistry.reserve(for: limit) / 2
    }

    /// Whether so many are open that no other proven connection may be over the limit.
    func isFull(limit: Int) -> Bool { current > limit + ConnectionRegistry.reserve(for: limit) / 2 }

    /// The listener whose loop has the address with most unproven connections: `listener` itself unless
    /// another has more.
    func mostCrowded(from listener: Listener) -> Listener {
        listeners.with { listeners in
            listeners.reduce(listener) { $1.mostUnproven > $0.mostUnproven ? $1 : $0 }
        }
    }

    /// Has the other loops look for a connection that gives way to one of `standing`, one loop after the
    /// other, one search at a time. False if no other loop exists, or if none found one a moment ago.
    func makeRoomElsewhere(than listener: Listener, for standing: ConnectionStanding, now: Int64) -> Bool {
        guard now > failed.load(ordering: .relaxed) + 1 else { return false }
        let others = listeners.with { $0.filter { $0 !== listener } }
        guard !others.isEmpty else { return false }
        if !isSearching.exchange(true, ordering: .acquiring) { ask(others[...], for: standing) }
        return true
    }

    private func ask(_ listeners: ArraySlice<Listener>, for standing: ConnectionStanding) {
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
