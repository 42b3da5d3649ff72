import CountersignAuthority
import CountersignWire
import Testing

/// An implementation of the port `Store`, as the contract opens it.
package struct StoreImplementation: Sendable {
    /// Opens the store of a name: at first an empty one, and later the same one again.
    private let open: @Sendable (_ name: String) throws -> any Store

    package init(open: @escaping @Sendable (_ name: String) throws -> any Store) { self.open = open }

    /// The contract over many connections.
    package func holdsAcrossOpenings(_ name: String) throws {
        let contract = StoreContract(opening: { try open(name) })
        try contract.holds()
        try contract.races()
    }

    package func holdsOnOneStore(_ name: String) throws {
        let store = try open(name)
        try StoreContract(store).holds()
        try StoreContract(store).races()
    }

    /// Everything can be done within a transaction, and all of it undone.
    package func holdsWithinATransaction(_ name: String) throws {
        let store = try open(name)
        try store.prepare()
        func change(_ store: any Store) throws(OperationalError) {
            do {
                try StoreContract(store).holds()
            } catch {
                Issue.record(error)
            }
            guard try store.revision() > 0 else {
                throw OperationalError(.usage, message: "nothing was done")
            }
            throw OperationalError(.failed, message: "undone")
        }
        let changes: [(any Store) throws(OperationalError) -> Void] = [change]
        let faults = try store.applyTogether(changes)
        #expect(faults == [OperationalError(.failed, message: "undone")])
        #expect(try store.revision() == 0 && store.apps().isEmpty && store.sessionChange() == 0)
    }

    /// Keyed requests are remembered up to so many keys and bytes.
    package func boundsKeyedRequests(_ name: String, by bound: Bound) throws {
        let contract = StoreContract(opening: { try open(name) })
        switch bound {
        case .keys: try contract.boundsOfKeys()
        case .bytes: try contract.boundsOfBytes()
        }
    }

    package enum Bound: Sendable, CaseIterable {
        case keys
        case bytes
    }
}
