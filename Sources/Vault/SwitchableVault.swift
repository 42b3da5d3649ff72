import CountersignSeal

/// A vault over another one, whose items outlive the process or do not, as its owner switches it.
package struct SwitchableVault: Sendable {
    /// What becomes of what is written.
    package enum Persistence: Sendable, Equatable {
        case outlivesTheProcess
        /// It is in memory alone.
        case endsWithTheProcess
    }

    /// To be read and written like any other.
    package let vault: Vault
    private let store: SwitchableStore
    private let locks: VaultLocks

    package init(over inner: Vault, persistence keeping: Persistence) {
        store = SwitchableStore(inner.store, persistence: keeping)
        locks = inner.locks
        vault = Vault(store, locks: locks)
    }

    /// Moves items to where they belong from now on, as they are, version and all. Where one refers to
    /// another, the one that is referred to comes first.
    package func move(_ names: [ItemName], to keeping: Persistence) throws(VaultError) {
        let lock = try locks.write()
        defer { lock.release() }
        try store.move(names, to: keeping)
    }

    /// Removes what an earlier process has kept, where nothing is to outlive this one.
    package func removePersisted(_ names: [ItemName]) throws(VaultError) {
        let lock = try locks.write()
        defer { lock.release() }
        try store.removePersisted(names)
    }
}

private final class SwitchableStore: ItemStore {
    private struct State {
        var keeping: SwitchableVault.Persistence
        var items: [ItemName: Secret] = [:]
    }

    private let inner: any ItemStore
    private let state: Locked<State>

    init(_ inner: any ItemStore, persistence keeping: SwitchableVault.Persistence) {
        self.inner = inner
        state = Locked(State(keeping: keeping))
    }

    /// Where writings go now; in memory with what is there.
    private var here: [ItemName: Secret]? {
        state.with { $0.keeping == .endsWithTheProcess ? $0.items : nil }
    }

    func find(_ name: ItemName) -> VaultReadResult<Secret> {
        guard let here else { return inner.find(name) }
        return here[name].map { .value($0) } ?? .absent
    }

    func names() throws(VaultError) -> [ItemName] {
        guard let here else { return try inner.names() }
        return Array(here.keys)
    }

    func put(_ bytes: Secret, at name: ItemName) throws(VaultError) {
        guard here == nil else { return state.with { $0.items[name] = bytes } }
        try inner.put(bytes, at: name)
    }

    func remove(_ name: ItemName) throws(VaultError) {
        guard here == nil else { return state.with { $0.items[name] = nil } }
        try inner.remove(name)
    }

    /// The one place is written before the other is emptied: killed in between, nothing is lost.
    func move(_ names: [ItemName], to keeping: SwitchableVault.Persistence) throws(VaultError) {
        switch keeping {
        case .endsWithTheProcess:
            if here == nil {
                var items: [ItemName: Secret] = [:]
                for name in names { items[name] = try inner.find(name).get() }
                state.with { [items] in $0 = State(keeping: keeping, items: items) }
            }
            // A retry after this failure must not be told that the move is complete while it is not.
            for name in names.reversed() { try inner.remove(name) }
        case .outlivesTheProcess:
            guard let here else { return }
            for name in names { if let item = here[name] { try inner.put(item, at: name) } }
            state.with { $0 = State(keeping: keeping) }
        }
    }

    func removePersisted(_ names: [ItemName]) throws(VaultError) {
        guard here != nil else { return }
        for name in names.reversed() { try inner.remove(name) }
    }
}
