import CountersignMemory
import CountersignTrust
import CountersignVault

/// A legacy client's place in the vault, as far as that blocks a thread for long: a keyring opens when a person has typed his passphrase,
/// and the threads that tasks run on are few.
final class LegacyVault: Sendable {
    private let vault: RememberingVault
    private let item: ItemName
    private let line = BlockingLine("countersign.legacy")
    private let isOpen = Locked(false)

    init(_ vault: RememberingVault, _ item: ItemName) {
        (self.vault, self.item) = (vault, item)
    }

    /// Opens it where that was not done, and removes what an earlier process has kept where nothing is to outlive this one. What goes
    /// wrong is tried again at the next call.
    func open() async throws(VaultProblem) {
        guard !isOpen.with({ $0 }) else { return }
        try await forgetKept()
        let (vault, item) = (vault, item)
        _ = try await line.run { .success(vault.vault.read(item)) }.certain()
        isOpen.with { $0 = true }
    }

    /// Removes what other processes have kept, where nothing is to outlive this one.
    func forgetKept() async throws(VaultProblem) {
        let (vault, item) = (vault, item)
        try await line.run {
            Result { () throws(VaultProblem) in try vault.forgetKept([item]) }
        }
    }
}
