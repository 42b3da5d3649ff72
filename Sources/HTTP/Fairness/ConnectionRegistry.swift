import Synchronization

/// What the listeners of one port share: how many connections are open over all loops, and whose they are.
package final class ConnectionRegistry: Sendable {
    enum Standing { case within, over, farOver }

    /// Connections over the limit that are let in to be told so; beyond them there is only closing.
    private static let reserve = 64
    private let count = Atomic<Int>(0)
    package let addresses: AddressTable
    let accounts = AccountTable()
    package let counters = EngineCounters()

    package init(addresses: AddressTable = AddressTable()) { self.addresses = addresses }

    func add(limit: Int) -> Standing {
        let count = count.add(1, ordering: .relaxed).newValue
        if count <= limit { return .within }
        if count <= limit + ConnectionRegistry.reserve { return .over }
        remove()
        return .farOver
    }

    /// Open connections.
    package var current: Int { count.load(ordering: .relaxed) }

    func remove() { count.subtract(1, ordering: .relaxed) }
}
