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
        var form = Form.plain

        enum Form: Sendable, Equatable {
            case plain
            /// Under the key that it was opened with.
            case sealed
            /// Under the key of that name, which is not here: what is kept is not known.
            case locked(String)
        }

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

    func read(opening key: LegacySealKey? = nil) throws(LegacyProblem) -> Found {
        do throws(VaultProblem) {
            guard let item = try vault.read(name).certain() else { return Found(kept: LegacyKept()) }
            var (contents, form) = (item.contents.secret, Found.Form.plain)
            if let sealed = try SealedKept(contents) {
                guard let opened = try sealed.opened(by: key, as: name) else {
                    return Found(kept: LegacyKept(), version: item.version, form: .locked(sealed.keyName))
                }
                (contents, form) = (opened, .sealed)
            }
            guard let kept = LegacyKept(contents) else {
                throw .failed("\(name): holds what this build cannot read")
            }
            return Found(kept: kept, version: item.version, form: form)
        } catch {
            throw .vault(error)
        }
    }

    /// Durable once it returns. Nil, and nothing done, where somebody else was faster. Nothing is left of
    /// what is empty. Sealed where a key is given.
    func write(
        _ kept: LegacyKept, under key: LegacySealKey? = nil, expecting expectation: Vault.Expectation
    ) throws(LegacyProblem) -> Found? {
        do throws(VaultProblem) {
            guard !kept.isEmpty else {
                try vault.erase(name, expecting: expectation)
                return Found(kept: kept)
            }
            var contents = kept.vaultContents
            if let key { contents = try SealedKept.sealed(contents, under: key, as: name) }
            let version = try vault.write(.bytes(contents), to: name, expecting: expectation)
            return Found(kept: kept, version: version, form: key == nil ? .plain : .sealed)
        } catch {
            if error == .changed { return nil }
            throw .vault(error)
        }
    }
}
