/// Moves what an older version left into the vault. Each thing is erased where it was only after the vault has it durably and gives
/// it back, so that a crash at any point loses nothing; started again, it goes on.
package struct Migration: Sendable {
    package struct Report: Sendable, Equatable {
        package var moved: [ItemName] = []
        /// The vault had something of that name, which is newer; the remains were erased.
        package var superseded: [ItemName] = []
        /// Keys of what was erased without being kept.
        package var discarded: [String] = []
        /// Keys of what is still there, and why.
        package var left: [String: String] = [:]
    }

    private let source: any RememberedCredentials
    private let vault: Vault

    package init(from source: any RememberedCredentials, into vault: Vault) {
        self.source = source
        self.vault = vault
    }

    /// Throws where the source cannot be read; what goes wrong with one thing is in the report.
    package func run() throws(VaultProblem) -> Report {
        var report = Report()
        for remain in try source.read().certain() ?? [] {
            do {
                try settle(remain, &report)
            } catch {
                report.left[remain.key] = "\(error)"
            }
        }
        return report
    }

    private func settle(_ remain: Remain, _ report: inout Report) throws(VaultProblem) {
        switch remain.fate {
        case .leave(let reason): report.left[remain.key] = reason
        case .discard:
            try source.erase(remain)
            report.discarded.append(remain.key)
        case .move(let contents, let name):
            let isThere = try vault.read(name).certain() != nil
            if !isThere {
                let version = try vault.write(contents, to: name, expecting: .absent)
                guard try vault.read(name).certain()?.version == version else { throw .changed }
            }
            try source.erase(remain)
            if isThere { report.superseded.append(name) } else { report.moved.append(name) }
        }
    }
}
