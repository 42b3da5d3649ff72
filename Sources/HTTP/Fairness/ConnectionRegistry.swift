import Synchronization

/// What a connection's latest request has proved. Where connections are short, those that proved less give way first.
enum ConnectionStanding: Sendable, CaseIterable { case unproven, release, session }

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

    /// Bytes of bodies that are held.
    package var heldBytes: Int { held.current }

    // MARK: Making room

    private let listeners = Locked<[Listener]>([])
    private let isMakingRoom = Atomic<Bool>(false)
    /// The second in which no connection was idle.
    private let failed = Atomic<Int64>(-2)

    func register(_ listener: Listener) { listeners.withValue { $0.append(listener) } }

    func unregister(_ listener: Listener) { listeners.withValue { $0.removeAll { $0 === listener } } }

    /// Whether idle connections may be found that give way; not where none was a moment ago.
    func mayMakeRoom(now: Int64) -> Bool { now > failed.load(ordering: .relaxed) + 1 }

    /// Ends idle connections so that new ones find room: of all loops, those that proved less first. Returns
    /// at once; the loops end their own connections, one loop after the other. One search runs at a time, and
    /// ends several connections.
    func makeRoom(limit: Int) {
        guard !isMakingRoom.exchange(true, ordering: .acquiring) else { return }
        let steps = listeners.withValue { listeners in
            ConnectionStanding.allCases.flatMap { standing in listeners.map { Step(listener: $0, standing: standing) } }
        }
        let excess = max(0, current - limit)
        advance(steps[...], excess: max(1, excess), spare: limit / 32, found: 0)
    }

    private struct Step: Sendable {
        let listener: Listener
        let standing: ConnectionStanding
    }

    /// Of strangers some more are ended than are needed now, so that not every new connection causes a
    /// search; of others none.
    private func advance(_ steps: ArraySlice<Step>, excess: Int, spare: Int, found: Int) {
        let wanted = steps.first?.standing == .unproven ? excess + spare : excess
        guard let step = steps.first, found < wanted else {
            if found == 0 { failed.store(EventLoop.monotonicSeconds(), ordering: .relaxed) }
            return isMakingRoom.store(false, ordering: .releasing)
        }
        step.listener.loop.perform { [self] in
            // Enough were found among those that proved less: the others stay.
            let more = step.listener.evict(step.standing, most: wanted - found)
            let isEnough = found + more > 0 && steps.dropFirst().first?.standing != step.standing
            advance(isEnough ? [] : steps.dropFirst(), excess: excess, spare: spare, found: found + more)
        }
    }
}
