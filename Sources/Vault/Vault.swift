import CountersignSeal

/// What a device keeps so that it survives a restart and is not seen: texts and bytes by service and account.
///
/// Every writing gives the item a new ``ItemVersion``. A writer who names the version he read finds out that somebody was
/// faster, so that a refresh that comes late cannot bring back a user who has signed out.
public struct Vault: Sendable {
    /// In which state an item has to be for a change to happen.
    public enum Expectation: Sendable, Equatable {
        /// Any: the last writer wins.
        case anything
        /// It must not be there.
        case absent
        /// It must be as it was when this version of it was read.
        case version(ItemVersion)
    }

    let store: any ItemStore
    let locks: VaultLocks
    /// Where an app's calls wait.
    let line: BlockingLine

    /// `store` is where items are; whoever shares it shares `locks`, too.
    package init(_ store: any ItemStore, locks: VaultLocks) {
        self.store = store
        self.locks = locks
        line = BlockingLine("countersign.vault")
    }

    /// The vault at a place. Nothing is opened, and nobody asked, before its first use.
    public init(_ place: VaultPlace) { self = place.vault() }

    /// Blocks its thread, as ``write(_:to:expecting:)``, ``erase(_:expecting:)`` and ``list()`` do: for as long as a disk or a keyring
    /// takes, and where a passphrase must be asked for, a person.
    package func read(_ name: ItemName) -> Reading<VaultItem> {
        store.find(name).flatMap { stored in
            guard let item = VaultItem(stored: stored) else { return .failed("\(name): not written by this program") }
            return .value(item)
        }
    }

    /// All items' names, sorted.
    package func list() throws(VaultProblem) -> [ItemName] { try store.names().sorted() }

    /// Durable once it returns. Throws ``VaultProblem/changed``, and does nothing, where the expectation does not hold.
    @discardableResult
    package func write(
        _ contents: ItemContents, to name: ItemName, expecting expectation: Expectation = .anything
    ) throws(VaultProblem) -> ItemVersion {
        let lock = try locks.write()
        defer { lock.release() }
        try require(expectation, of: name)
        let version = ItemVersion.next()
        try store.put(VaultItem(contents, version).stored, at: name)
        return version
    }

    /// Nothing is left of it. Erases nothing while it cannot be told whether the expectation holds.
    package func erase(
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
