/// What an app does with a vault. Everything here waits without keeping a thread of the tasks', for a disk is slow and a person is slower.
extension Vault {
    /// A text, as ``setText(_:at:expecting:)`` kept it.
    public func text(_ name: ItemName) async -> Reading<String> {
        await item(name).flatMap { item in item.text.map { .value($0) } ?? .failed("\(name): holds bytes, no text") }
    }

    /// Bytes, as ``setBytes(_:at:expecting:)`` kept them; of a text, its UTF-8.
    public func bytes(_ name: ItemName) async -> Reading<[UInt8]> {
        await item(name).flatMap { .value($0.bytes) }
    }

    /// The item with its version, for who means to change it.
    public func item(_ name: ItemName) async -> Reading<VaultItem> {
        do {
            return try await line.run { .success(read(name)) }
        } catch {
            return Reading(error)
        }
    }

    /// Keeps a text, durably once it returns. Throws ``VaultProblem/changed``, and does nothing, where the expectation does not hold.
    @discardableResult
    public func setText(
        _ text: String, at name: ItemName, expecting expectation: Expectation = .anything
    ) async throws(VaultProblem) -> ItemVersion {
        try await set(.text(text), at: name, expecting: expectation)
    }

    /// The same for bytes.
    @discardableResult
    public func setBytes(
        _ bytes: [UInt8], at name: ItemName, expecting expectation: Expectation = .anything
    ) async throws(VaultProblem) -> ItemVersion {
        try await set(.bytes(bytes), at: name, expecting: expectation)
    }

    /// The same for either.
    @discardableResult
    public func set(
        _ contents: ItemContents, at name: ItemName, expecting expectation: Expectation = .anything
    ) async throws(VaultProblem) -> ItemVersion {
        try await line.run {
            Result { () throws(VaultProblem) in try write(contents, to: name, expecting: expectation) }
        }
    }

    /// Nothing is left of it; one that is not there is well. Removes nothing while it cannot be told whether the expectation holds.
    public func remove(_ name: ItemName, expecting expectation: Expectation = .anything) async throws(VaultProblem) {
        try await line.run { Result { () throws(VaultProblem) in try erase(name, expecting: expectation) } }
    }

    /// All items' names, sorted. Fails where some may be hidden, rather than leave them out.
    public func names() async throws(VaultProblem) -> [ItemName] {
        try await line.run { Result { () throws(VaultProblem) in try list() } }
    }

    /// The accounts of a service, sorted.
    public func accounts(of service: String) async throws(VaultProblem) -> [String] {
        try await names().filter { $0.service.utf8.elementsEqual(service.utf8) }.map(\.account)
    }

    /// What `body` does, while nobody else, in this process or another, holds the vault's lease: for what spans several readings and
    /// writings. Waits `patience` at most. Writings alone do not need it, and go on meanwhile.
    @discardableResult
    public func withLease<Value>(
        within patience: Duration = .seconds(30), _ body: () async throws -> Value
    ) async throws -> Value {
        let lock = try await lease(within: patience)
        defer { lock.release() }
        return try await body()
    }
}
