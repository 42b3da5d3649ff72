/// Moves what an older version left into the vault. Each thing is erased where it was only after the vault has it durably and gives
/// it back, so that a crash at any point loses nothing; started again, it goes on.
public struct VaultMigration: Sendable {
    /// What became of everything that was found.
    public struct Report: Sendable, Equatable {
        /// The vault has it now, and nobody else.
        public var moved: [ItemName] = []
        /// The vault had something of that name, which is newer; what was left was erased.
        public var superseded: [ItemName] = []
        /// Keys of what was erased without being kept.
        public var discarded: [String] = []
        /// Keys of what is still there, and why.
        public var left: [String: String] = [:]

        /// Of a source that had nothing.
        public init() {}
    }

    private let source: any RememberedCredentials
    private let vault: Vault

    /// To be run at each start, for it costs little where nothing is left.
    public init(from source: any RememberedCredentials, into vault: Vault) {
        self.source = source
        self.vault = vault
    }

    /// Throws where the source cannot be read; what goes wrong with one thing is in the report.
    public func run() async throws(VaultProblem) -> Report {
        try await vault.line.run { Result { () throws(VaultProblem) in try settleAll() } }
    }

    func settleAll() throws(VaultProblem) -> Report {
        var report = Report()
        for remembered in try source.read().certain() ?? [] {
            do {
                try settle(remembered, &report)
            } catch {
                report.left[remembered.key] = "\(error)"
            }
        }
        return report
    }

    private func settle(_ remembered: RememberedCredential, _ report: inout Report) throws(VaultProblem) {
        switch remembered.fate {
        case .leave(let reason): report.left[remembered.key] = reason
        case .discard:
            try source.erase(remembered)
            report.discarded.append(remembered.key)
        case .move(let contents, let name):
            let isThere = try vault.read(name).certain() != nil
            if !isThere {
                let version = try vault.write(contents, to: name, expecting: .absent)
                guard try vault.read(name).certain()?.version == version else { throw .changed }
            }
            try source.erase(remembered)
            if isThere { report.superseded.append(name) } else { report.moved.append(name) }
        }
    }
}
