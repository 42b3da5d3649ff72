import CountersignSeal
import CountersignWire

/// Where a vault keeps what it keeps. Nothing is opened before the vault's first use.
public struct VaultPlace: Sendable {
    enum Kind: Sendable {
        case machine(any StoreOpening)
        case folder(String)
        case given(Vault)
    }

    private let kind: Kind
    private var rule = ReinstallRule.forget
    private var services: [String] = []

    init(_ kind: Kind) { self.kind = kind }

    /// A file in this folder (made with mode 0700 where there is none), sealed with a key that lies beside it in a file of mode 0600.
    ///
    /// It keeps out the machine's other users, and nobody who reads the folder: for services, and for machines that have nothing
    /// better. Whoever copies the folder has the session.
    public static func folder(_ path: String) -> VaultPlace { VaultPlace(.folder(path)) }

    /// A vault that is there already: the app's own, or a test's.
    public static func using(_ vault: Vault) -> VaultPlace { VaultPlace(.given(vault)) }

    /// The same place with a rule for what an earlier installation of this program left there; without it, ``ReinstallRule/forget``.
    ///
    /// `services` are the app's own, and besides the client's the only ones that are forgotten. Only keychains and keyrings outlive a
    /// program; a folder goes with it, and a vault that was given is its owner's to judge.
    public func afterReinstall(_ rule: ReinstallRule, services: [String] = []) -> VaultPlace {
        var place = self
        (place.rule, place.services) = (rule, services)
        return place
    }

    /// The vault, for a program whose services these are; with those of ``afterReinstall(_:services:)``.
    package func vault(owning own: [String] = []) -> Vault {
        switch kind {
        case .given(let vault): return vault
        case .folder(let folder):
            let file = SealedFile("\(folder)/items.sealed", guardedBy: KeyFileGuard("\(folder)/items.key"))
            return Vault(file, locks: VaultLocks(folder: folder))
        case .machine(let machine):
            let settling = Settling(rule: rule, services: own + services, folder: machine.folder)
            return Vault(LazyStore(machine, settling), locks: VaultLocks(folder: machine.folder))
        }
    }
}

/// The marks of an installation, in the folder that goes with the program. Source: ``Reinstallation``.
struct Settling {
    let rule: ReinstallRule
    let services: [String]
    let folder: String

    /// What the rule says is done with a store that outlives the program. Throws ``VaultProblem/locked(_:)`` where it cannot be told yet:
    /// what may be an earlier owner's is not shown meanwhile.
    func settle(_ store: any ItemStore) throws(VaultProblem) {
        guard let first = services.first else { return }
        let own = "\(folder)/installation"
        try PrivateFolder.make(own)
        let whose = Array(first.utf8)
        let digest = SHA256.digest(whose.span)
        let mark = MarkFile("\(own)/\(Hex.encode(digest.span))")
        // Locks of its own: the vault's may be held by who opens it to write. Sound where each item is written by itself.
        let vault = Vault(store, locks: VaultLocks(folder: own))
        let reinstallation = Reinstallation(mark: mark, rule: rule, services: services)
        var outcome: Reinstallation.Outcome
        do throws(VaultProblem) {
            outcome = try reinstallation.settle(vault)
        } catch {
            // Another process started at the same moment, and was first.
            guard error == .changed else { throw error }
            outcome = try reinstallation.settle(vault)
        }
        if outcome == .undecided { throw .locked("whether the program was installed anew cannot be told yet") }
    }
}
