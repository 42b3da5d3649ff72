import CountersignSeal

/// A vault over another one, whose items outlive the process or do not, as its owner switches it.
package struct RememberingVault: Sendable {
    /// What becomes of what is written.
    package enum Keeping: Sendable, Equatable {
        case outlivesTheProcess
        /// It is in memory alone.
        case endsWithTheProcess
    }

    /// To be read and written like any other.
    package let vault: Vault
    private let store: RememberingStore
    private let locks: VaultLocks

    package init(over inner: Vault, _ keeping: Keeping) {
        store = RememberingStore(inner.store, keeping)
        locks = inner.locks
        vault = Vault(store, locks: locks)
    }

    /// Moves items to where they belong from now on, as they are, version and all. Where one refers to
    /// another, the one that is referred to comes first.
    package func keep(_ names: [ItemName], _ keeping: Keeping) throws(VaultProblem) {
        let lock = try locks.write()
        defer { lock.release() }
        try store.move(names, keeping)
    }

    /// Removes what an earlier process has kept, where nothing is to outlive this one.
    package func forgetKept(_ names: [ItemName]) throws(VaultProblem) {
        let lock = try locks.write()
        defer { lock.release() }
        try store.forgetKept(names)
    }
}

private final class RememberingStore: ItemStore {
    private struct State {
        var keeping: RememberingVault.Keeping
        var items: [ItemName: Secret] = [:]
    }

    private let inner: any ItemStore
    private let state: Locked<State>

    init(_ inner: any ItemStore, _ keeping: RememberingVault.Keeping) {
        self.inner = inner
        state = Locked(State(keeping: keeping))
    }

    /// Where writings go now; in memory with what is there.
    private var here: [ItemName: Secret]? {
        state.with { $0.keeping == .endsWithTheProcess ? $0.items : nil }
    }

    func find(_ name: ItemName) -> Reading<Secret> {
        guard let here else { return inner.find(name) }
        return here[name].map { .value($0) } ?? .absent
    }

    func names() throws(VaultProblem) -> [ItemName] {
        guard let here else { return try inner.names() }
        return Array(here.keys)
    }

    func put(_ bytes: Secret, at name: ItemName) throws(VaultProblem) {
        guard here == nil else { return state.with { $0.items[name] = bytes } }
        try inner.put(bytes, at: name)
    }

    func remove(_ name: ItemName) throws(VaultProblem) {
        guard here == nil else { return state.with { $0.items[name] = nil } }
        try inner.remove(name)
    }

    /// The one place is written before the other is emptied: killed in between, nothing is lost.
    func move(_ names: [ItemName], _ keeping: RememberingVault.Keeping) throws(VaultProblem) {
        switch keeping {
        case .endsWithTheProcess:
            if here == nil {
                var items: [ItemName: Secret] = [:]
                for name in names { items[name] = try inner.find(name).certain() }
                state.with { [items] in $0 = State(keeping: keeping, items: items) }
            }
            // Whoever asks again, because this failed, is not told that it is done while it is not.
            for name in names.reversed() { try inner.remove(name) }
        case .outlivesTheProcess:
            guard let here else { return }
            for name in names { if let item = here[name] { try inner.put(item, at: name) } }
            state.with { $0 = State(keeping: keeping) }
        }
    }

    func forgetKept(_ names: [ItemName]) throws(VaultProblem) {
        guard here != nil else { return }
        for name in names.reversed() { try inner.remove(name) }
    }
}
