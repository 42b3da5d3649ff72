import CountersignSeal

/// Texts and bytes by service and account, kept on a device so that they survive a restart and are protected
/// from other programs.
///
/// Each write gives the item a new ``ItemVersion``. A writer that names the version that it read learns of a
/// concurrent write, so that a late refresh cannot undo a logout.
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
    let queue: BlockingWorkQueue

    /// `store` holds the items; every user of the same store must share `locks` too.
    package init(_ store: any ItemStore, locks: VaultLocks) {
        self.store = store
        self.locks = locks
        queue = BlockingWorkQueue("countersign.vault")
    }

    /// The vault at a place. Nothing is opened, and no person is asked, before its first use.
    public init(_ place: VaultPlace) { self = place.vault() }

    /// Blocks its thread, as ``write(_:to:expecting:)``, ``erase(_:expecting:)`` and ``list()`` do: for as
    /// long as a disk or a keychain takes, or a person if a passphrase is needed.
    package func read(_ name: ItemName) -> VaultReadResult<VaultItem> {
        store.find(name).flatMap { stored in
            guard let item = VaultItem(stored: stored) else {
                return .failed("\(name): not written by this program")
            }
            return .value(item)
        }
    }

    /// All items' names, sorted.
    package func list() throws(VaultError) -> [ItemName] { try store.names().sorted() }

    /// Durable once it returns. Throws ``VaultError/changed``, and does nothing, where the expectation does
    /// not hold.
    @discardableResult
    package func write(
        _ contents: ItemContents, to name: ItemName, expecting expectation: Expectation = .anything
    ) throws(VaultError) -> ItemVersion {
        let lock = try locks.write()
        defer { lock.release() }
        try require(expectation, of: name)
        let version = ItemVersion.next()
        try store.put(VaultItem(contents, version: version).stored, at: name)
        return version
    }

    /// Nothing is left of it. Erases nothing while it cannot be told whether the expectation holds.
    package func erase(
        _ name: ItemName, expecting expectation: Expectation = .anything
    ) throws(VaultError) {
        let lock = try locks.write()
        defer { lock.release() }
        try require(expectation, of: name)
        try store.remove(name)
    }

    /// Waits, at most `patience`, until no other holder in this or another process has the lease. The caller
    /// then has it until it releases it or its process ends. For operations of several reads and writes,
    /// above all a refresh. Writes do not need it.
    package func lease(within patience: Duration) async throws(VaultError) -> FileLock {
        try await locks.lease(within: patience)
    }

    private func require(_ expectation: Expectation, of name: ItemName) throws(VaultError) {
        switch expectation {
        case .anything: return
        case .absent: guard try read(name).get() == nil else { throw .changed }
        case .version(let expected): guard try read(name).get()?.version == expected else { throw .changed }
        }
    }
}

/// The asynchronous interface of a vault for apps. No call blocks a thread of the tasks, because disks are
/// slow and people are slower.
extension Vault {
    /// A text, as ``setText(_:at:expecting:)`` kept it.
    public func text(_ name: ItemName) async -> VaultReadResult<String> {
        await item(name).flatMap { item in
            item.text.map { .value($0) } ?? .failed("\(name): holds bytes, no text")
        }
    }

    /// Bytes, as ``setBytes(_:at:expecting:)`` kept them; of a text, its UTF-8.
    public func bytes(_ name: ItemName) async -> VaultReadResult<[UInt8]> {
        await item(name).flatMap { .value($0.bytes) }
    }

    /// The item with its version, for a caller that will change it.
    public func item(_ name: ItemName) async -> VaultReadResult<VaultItem> {
        do {
            return try await queue.run { .success(read(name)) }
        } catch {
            return VaultReadResult(error)
        }
    }

    /// Keeps a text, durably once it returns. Throws ``VaultError/changed``, and does nothing, where the
    /// expectation does not hold.
    @discardableResult
    public func setText(
        _ text: String, at name: ItemName, expecting expectation: Expectation = .anything
    ) async throws(VaultError) -> ItemVersion {
        try await set(.text(text), at: name, expecting: expectation)
    }

    /// The same for bytes.
    @discardableResult
    public func setBytes(
        _ bytes: [UInt8], at name: ItemName, expecting expectation: Expectation = .anything
    ) async throws(VaultError) -> ItemVersion {
        try await set(.bytes(bytes), at: name, expecting: expectation)
    }

    /// The same for either.
    @discardableResult
    public func set(
        _ contents: ItemContents, at name: ItemName, expecting expectation: Expectation = .anything
    ) async throws(VaultError) -> ItemVersion {
        try await queue.run {
            Result { () throws(VaultError) in try write(contents, to: name, expecting: expectation) }
        }
    }

    /// Nothing is left of it; one that is not there is well. Removes nothing while it cannot be told whether
    /// the expectation holds.
    public func remove(_ name: ItemName, expecting expectation: Expectation = .anything)
        async throws(VaultError)
    {
        try await queue.run { Result { () throws(VaultError) in try erase(name, expecting: expectation) } }
    }

    /// All items' names, sorted. Fails where some may be hidden, rather than leave them out.
    public func names() async throws(VaultError) -> [ItemName] {
        try await queue.run { Result { () throws(VaultError) in try list() } }
    }

    /// The accounts of a service, sorted.
    public func accounts(of service: String) async throws(VaultError) -> [String] {
        try await names().filter { $0.service.utf8.elementsEqual(service.utf8) }.map(\.account)
    }

    /// Runs `body` while no other holder, in this or another process, has the vault's lease: for operations
    /// of several reads and writes. Waits at most `patience`. Single writes do not need the lease, and
    /// continue meanwhile.
    @discardableResult
    public func withLease<Value>(
        within patience: Duration = .seconds(30), perform body: () async throws -> Value
    ) async throws -> Value {
        let lock = try await lease(within: patience)
        defer { lock.release() }
        return try await body()
    }
}
