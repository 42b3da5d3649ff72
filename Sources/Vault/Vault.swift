import CountersignSeal

/// What a device keeps so that it survives a restart and is not seen: texts and bytes by service and account.
///
/// Every writing gives the item a new ``ItemVersion``. A writer who names the version he read finds out that somebody was
/// faster, so that a refresh that comes late cannot bring back a user who has signed out.
package struct Vault: Sendable {
    /// In which state an item has to be for a change to happen.
    package enum Expectation: Sendable, Equatable {
        case anything
        case absent
        case version(ItemVersion)
    }

    private let store: any ItemStore
    private let locks: VaultLocks

    /// `store` is where items are; whoever shares it shares `locks`, too.
    package init(_ store: any ItemStore, locks: VaultLocks) {
        self.store = store
        self.locks = locks
    }

    package func read(_ name: ItemName) -> Reading<Item> {
        switch store.find(name) {
        case .absent: return .absent
        case .locked(let detail): return .locked(detail)
        case .failed(let detail): return .failed(detail)
        case .value(let stored):
            guard let item = Item(stored: stored) else { return .failed("\(name): not written by this program") }
            return .value(item)
        }
    }

    /// All items' names, sorted.
    package func names() throws(VaultProblem) -> [ItemName] { try store.names().sorted() }

    /// The accounts of a service, sorted.
    package func accounts(of service: String) throws(VaultProblem) -> [String] {
        try names().filter { $0.service.utf8.elementsEqual(service.utf8) }.map(\.account)
    }

    /// Durable once it returns; blocks its thread until then. Throws ``VaultProblem/changed``, and does nothing, where the expectation does not hold.
    @discardableResult
    package func write(
        _ contents: ItemContents, to name: ItemName, expecting expectation: Expectation = .anything
    ) throws(VaultProblem) -> ItemVersion {
        let lock = try locks.write()
        defer { lock.release() }
        try require(expectation, of: name)
        let version = ItemVersion.next()
        try store.put(Item(contents, version).stored, at: name)
        return version
    }

    /// Nothing is left of it. Removes nothing while it cannot be told whether the expectation holds.
    package func remove(
        _ name: ItemName, expecting expectation: Expectation = .anything
    ) throws(VaultProblem) {
        let lock = try locks.write()
        defer { lock.release() }
        try require(expectation, of: name)
        try store.remove(name)
    }

    /// Waits until no other holder, in this process or another, has the lease, `patience` at most; then it is the caller's until he
    /// releases it or dies. For what spans several readings and writings, a refresh above all. Writings do not need it.
    nonisolated(nonsending) package func lease(within patience: Duration) async throws(VaultProblem) -> FileLock {
        try await locks.lease(within: patience)
    }

    private func require(_ expectation: Expectation, of name: ItemName) throws(VaultProblem) {
        switch expectation {
        case .anything: return
        case .absent: guard try read(name).certain() == nil else { throw .changed }
        case .version(let expected): guard try read(name).certain()?.version == expected else { throw .changed }
        }
    }
}
