import CountersignSeal

/// A mark in the program's own folder, which is removed with the program. A keychain outlives the program.
package protocol InstallationMark: Sendable {
    /// Absent only where that is certain: before a device's first unlock, files that are there cannot be
    /// read.
    func read() -> VaultReadResult<[UInt8]>
    func write(_ mark: [UInt8]) throws(VaultError)
}

/// A mark in a file of its own.
package struct MarkFile: InstallationMark {
    private let file: PrivateFile

    package init(_ path: String) { file = PrivateFile(path: path) }

    package func read() -> VaultReadResult<[UInt8]> { file.read() }
    package func write(_ mark: [UInt8]) throws(VaultError) { try file.replace(mark) }
}

/// The rule for items that an earlier installation of the program left in a place that outlives programs,
/// such as a keychain.
public enum ReinstallRule: Sendable {
    /// The user is still signed in after installing the program again.
    case keep
    /// Removing the program signs the user out. Nothing is forgotten until it is certain that the program was
    /// removed.
    case forget
}

/// Distinguishes a new installation of a program from one that was there before, and applies the rule to the
/// earlier one's items. The same mark is in the vault and in the program's folder; a process that finds it
/// only in the vault is a new installation.
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

    /// To be called at each start, before the vault is used. Killed half-way, it comes to the same end at the
    /// next start.
    package func resolve(in vault: Vault) throws(VaultError) -> Outcome {
        let name = try ItemName(service: "countersign.installation", account: services.first ?? "program")
        let (inVault, here) = (vault.read(name), mark.read())
        switch Reinstallation.compare(vault: inVault, folder: here) {
        case .undecided: return .undecided
        case .same: return .sameInstallation
        case .firstStart:
            let bytes = SystemRandom().bytes(16)
            // Ours first: a vault's mark without ours would read as a new installation.
            try mark.write(bytes)
            try vault.write(.bytes(Secret(copying: bytes.span)), to: name, expecting: .absent)
            return .firstStart
        case .vaultIsNew:
            guard let bytes = try here.get() else { return .undecided }
            try vault.write(.bytes(Secret(copying: bytes.span)), to: name, expecting: .absent)
            return .firstStart
        case .programIsNew:
            let isNew = try here.get() == nil
            let removed = rule == .forget && isNew ? try forget(vault) : 0
            guard let item = try inVault.get() else { return .undecided }
            try mark.write(Reinstallation.bytes(item))
            return .reinstalled(removed: removed)
        }
    }

    /// Different marks mean a folder restored from a backup. Which one is older is unknown, so nothing is
    /// forgotten.
    static func compare(vault inVault: VaultReadResult<VaultItem>, folder here: VaultReadResult<[UInt8]>)
        -> Finding
    {
        switch (inVault, here) {
        case (.absent, .absent): .firstStart
        case (.absent, .value): .vaultIsNew
        case (.value, .absent): .programIsNew
        case (.value(let item), .value(let mark)): bytes(item) == mark ? .same : .programIsNew
        default: .undecided
        }
    }

    private func forget(_ vault: Vault) throws(VaultError) -> Int {
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
