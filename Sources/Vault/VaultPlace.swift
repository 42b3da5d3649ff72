import CountersignSeal
import CountersignWire

/// Where a vault keeps what it keeps. Nothing is opened before the vault's first use.
public struct VaultPlace: Sendable {
    enum Kind: Sendable {
        /// A store that outlives the program, such as a keychain. The folder holds locks and the
        /// installation's mark, and nothing secret.
        case outliving(any ItemStore, folder: String)
        case sealedFile(folder: String, guardedBy: any KeyGuard)
        case given(Vault)
    }

    private let kind: Kind
    private var rule = ReinstallRule.forget
    private var services: [String] = []

    init(_ kind: Kind) { self.kind = kind }

    /// A file in this folder (made with mode 0700 if it does not exist), sealed with a key in a file of mode
    /// 0600 beside it.
    ///
    /// It keeps out the machine's other users, but no process that can read the folder: for services, and for
    /// machines that have nothing better. A copy of the folder contains the session.
    public static func folder(_ path: String) -> VaultPlace {
        VaultPlace(.sealedFile(folder: path, guardedBy: KeyFileGuard("\(path)/items.key")))
    }

    /// A vault that is there already: the app's own, or a test's.
    public static func using(_ vault: Vault) -> VaultPlace { VaultPlace(.given(vault)) }

    /// The same place with a rule for what an earlier installation of this program left there; without it,
    /// ``ReinstallRule/forget``.
    ///
    /// `services` are the app's own, and besides the client's the only ones that are forgotten. Only a
    /// keychain outlives a program; a folder is removed with it, and a vault that was given is its owner's to
    /// judge.
    public func afterReinstall(_ rule: ReinstallRule, services: [String] = []) -> VaultPlace {
        var place = self
        (place.rule, place.services) = (rule, services)
        return place
    }

    /// The vault, for a program whose services these are; with those of ``afterReinstall(_:services:)``.
    package func vault(owning own: [String] = []) -> Vault {
        switch kind {
        case .given(let vault): return vault
        case .sealedFile(let folder, let keyGuard):
            let file = SealedFile("\(folder)/items.sealed", guardedBy: keyGuard)
            return Vault(file, locks: VaultLocks(folder: folder))
        case .outliving(let store, let folder):
            let check = InstallationCheck(rule: rule, services: own + services, folder: folder)
            return Vault(OutlivingStore(store, installation: check), locks: VaultLocks(folder: folder))
        }
    }
}

/// The marks of an installation, in the folder that goes with the program. Source: ``Reinstallation``.
struct InstallationCheck {
    let rule: ReinstallRule
    let services: [String]
    let folder: String

    /// Applies the rule to a store that outlives the program. Throws ``VaultError/locked(_:)`` if the result
    /// cannot be determined yet: items that may be an earlier owner's are not shown meanwhile.
    func apply(to store: any ItemStore) throws(VaultError) {
        guard let first = services.first else { return }
        let own = "\(folder)/installation"
        try PrivateFolder.make(own)
        let whose = Array(first.utf8)
        let digest = SHA256.digest(whose.span)
        let mark = MarkFile("\(own)/\(Hex.encode(digest.span))")
        // This vault has locks of its own, because the caller may hold the outer vault's lock while it opens
        // it to write. That is safe because each item is written independently.
        let vault = Vault(store, locks: VaultLocks(folder: own))
        let reinstallation = Reinstallation(mark: mark, rule: rule, services: services)
        var outcome: Reinstallation.Outcome
        do {
            outcome = try reinstallation.resolve(in: vault)
        } catch {
            // Another process started at the same moment, and was first.
            guard error == .changed else { throw error }
            outcome = try reinstallation.resolve(in: vault)
        }
        if outcome == .undecided {
            throw .locked("whether the program was installed anew cannot be told yet")
        }
    }
}

/// A store that outlives the program. The rule for an earlier installation's items is applied at the first
/// use, since it reads the store and may fail, which must not happen where the app names a place. A failure
/// is retried at the next call.
final class OutlivingStore: ItemStore {
    private let inner: any ItemStore
    private let installation: InstallationCheck
    private let isChecked = Locked(false)

    init(_ inner: any ItemStore, installation: InstallationCheck) {
        self.inner = inner
        self.installation = installation
    }

    func find(_ name: ItemName) -> VaultReadResult<Secret> {
        do {
            return try store().find(name)
        } catch {
            return VaultReadResult(error)
        }
    }

    func names() throws(VaultError) -> [ItemName] { try store().names() }

    func put(_ bytes: Secret, at name: ItemName) throws(VaultError) { try store().put(bytes, at: name) }

    func remove(_ name: ItemName) throws(VaultError) { try store().remove(name) }

    private func store() throws(VaultError) -> any ItemStore {
        try isChecked.with { (isChecked) throws(VaultError) in
            if !isChecked { try installation.apply(to: inner) }
            isChecked = true
        }
        return inner
    }
}
