import CountersignSeal

/// What goes with the program when it is removed: a mark in its own folder. A keychain outlives the program.
package protocol InstallationMark: Sendable {
    /// Absent only where that is certain: before a device's first unlock, files that are there cannot be read.
    func read() -> Reading<[UInt8]>
    func write(_ mark: [UInt8]) throws(VaultProblem)
}

/// A mark in a file of its own.
package struct MarkFile: InstallationMark {
    private let file: PrivateFile

    package init(_ path: String) { file = PrivateFile(path: path) }

    package func read() -> Reading<[UInt8]> { file.read() }
    package func write(_ mark: [UInt8]) throws(VaultProblem) { try file.replace(mark) }
}

/// What becomes of what an earlier installation of the program kept in a place that outlives programs, as keychains and keyrings do.
public enum ReinstallRule: Sendable {
    /// Who installs the program again is still signed in.
    case keep
    /// Who removes the program is signed out. Forgets nothing while it cannot be told that the program was removed.
    case forget
}

/// Tells a program that was installed again from one that was there all along, and does with the earlier one's items what the rule
/// says. The same mark stands in the vault and in the program's folder; whoever finds it in the vault alone is new here.
package struct Reinstallation: Sendable {
    package enum Outcome: Sendable, Equatable {
        case firstStart
        case sameInstallation
        /// How many items were removed; none where the rule keeps them.
        case reinstalled(removed: Int)
        /// One of the two marks cannot be read now. Nothing was removed; ask again at the next start.
        case undecided
    }

    /// What the two marks say together.
    enum Finding: Equatable { case firstStart, same, vaultIsNew, programIsNew, undecided }

    private let mark: any InstallationMark
    private let rule: ReinstallRule
    private let services: [String]

    /// `services` are those that belong to this program, and the only ones that are forgotten.
    package init(mark: any InstallationMark, rule: ReinstallRule, services: [String]) {
        self.mark = mark
        self.rule = rule
        self.services = services
    }

    /// To be called at each start, before the vault is used. Killed half-way, it comes to the same end at the next start.
    package func settle(_ vault: Vault) throws(VaultProblem) -> Outcome {
        let name = try ItemName(service: "countersign.installation", account: services.first ?? "program")
        let (inVault, here) = (vault.read(name), mark.read())
        switch Reinstallation.compare(inVault, here) {
        case .undecided: return .undecided
        case .same: return .sameInstallation
        case .firstStart:
            let bytes = SystemRandom().bytes(16)
            // Ours first: a vault's mark without ours would read as a new installation.
            try mark.write(bytes)
            try vault.write(.bytes(Secret(copying: bytes.span)), to: name, expecting: .absent)
            return .firstStart
        case .vaultIsNew:
            guard let bytes = try here.certain() else { return .undecided }
            try vault.write(.bytes(Secret(copying: bytes.span)), to: name, expecting: .absent)
            return .firstStart
        case .programIsNew:
            let isNew = try here.certain() == nil
            let removed = rule == .forget && isNew ? try forget(vault) : 0
            guard let item = try inVault.certain() else { return .undecided }
            try mark.write(Reinstallation.bytes(item))
            return .reinstalled(removed: removed)
        }
    }

    /// A mark that differs is a folder brought back from a backup: nobody knows which is older, so nothing is forgotten.
    static func compare(_ inVault: Reading<VaultItem>, _ here: Reading<[UInt8]>) -> Finding {
        switch (inVault, here) {
        case (.absent, .absent): .firstStart
        case (.absent, .value): .vaultIsNew
        case (.value, .absent): .programIsNew
        case (.value(let item), .value(let mark)): bytes(item) == mark ? .same : .programIsNew
        default: .undecided
        }
    }

    private func forget(_ vault: Vault) throws(VaultProblem) -> Int {
        var removed = 0
        for service in services {
            for name in try vault.list() where name.service.utf8.elementsEqual(service.utf8) {
                try vault.erase(name)
                removed += 1
            }
        }
        return removed
    }

    private static func bytes(_ item: VaultItem) -> [UInt8] {
        item.contents.secret.withExposedBytes { span in span.indices.map { span[$0] } }
    }
}
