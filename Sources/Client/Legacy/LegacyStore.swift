import CountersignVault

/// Where a legacy client's state lies. Whoever changes it names the version that he read, so that what comes late finds out that it
/// does.
package struct LegacyStore: Sendable {
    private let vault: Vault
    private let name: ItemName

    package init(_ vault: Vault, _ name: ItemName) {
        self.vault = vault
        self.name = name
    }

    struct Found: Sendable {
        var kept: LegacyKept
        /// Nil where nothing is kept.
        var version: ItemVersion?

        var expectation: Vault.Expectation { version.map { .version($0) } ?? .absent }
    }

    /// Waits a little longer than an exchange under the lease takes at most.
    nonisolated(nonsending) func lease() async throws(LegacyProblem) -> FileLock {
        do {
            return try await vault.lease(within: .seconds(120))
        } catch {
            throw .vault(error)
        }
    }

    func read() throws(LegacyProblem) -> Found {
        do throws(VaultProblem) {
            guard let item = try vault.read(name).certain() else { return Found(kept: LegacyKept()) }
            guard let kept = LegacyKept(item.contents.secret) else {
                throw .failed("\(name): holds what this build cannot read")
            }
            return Found(kept: kept, version: item.version)
        } catch {
            throw .vault(error)
        }
    }

    /// Durable once it returns. Nil, and nothing done, where somebody else was faster. Nothing is left of what is empty.
    func write(
        _ kept: LegacyKept, expecting expectation: Vault.Expectation
    ) throws(LegacyProblem) -> Found? {
        do throws(VaultProblem) {
            guard !kept.isEmpty else {
                try vault.erase(name, expecting: expectation)
                return Found(kept: kept)
            }
            let version = try vault.write(.bytes(kept.vaultContents), to: name, expecting: expectation)
            return Found(kept: kept, version: version)
        } catch {
            if error == .changed { return nil }
            throw .vault(error)
        }
    }
}
