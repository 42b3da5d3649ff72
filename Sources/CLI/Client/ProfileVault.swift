import CountersignSeal
import CountersignTransport
import CountersignVault
import CountersignWire
import Glibc

/// Where a profile keeps who is signed in.
struct ProfileVault: Sendable {
    enum Kind: String, Sendable, CaseIterable {
        /// A sealed file in the profile's folder, with its key beside it. What one gets unasked: it opens at once, over ssh and at night,
        /// where a keyring is closed and a TPM takes its time.
        case file
        /// The machine's own: the Secret Service, else a file that the TPM or systemd-creds opens; chosen once.
        case platform
        /// A sealed file under a passphrase, which is asked for.
        case passphrase
    }

    let vault: Vault
    /// What it has come to: `file`, `passphrase`, `secret-service`, `tpm` or `systemd-creds`.
    let backEnd: String

    /// Asks for a passphrase where it takes one: now, because later a lock may be held.
    init(_ profile: Profile, _ folder: ProfileFolder, _ run: Invocation) throws(Fault) {
        switch profile.vault {
        case .file:
            try EarlierVault(folder: folder).move(to: ClientDesk.item(profile, Origin.split(profile.url).origin))
            self.init(
                SealedFile(folder.vault, guardedBy: KeyFileGuard(folder.vaultKey)), folder, profile.vault.rawValue)
        case .passphrase:
            try self.init(passphrase: VaultPassphrase(run: run).read(), folder)
        case .platform:
            let platform = try ProfileVault.platform(folder)
            let store = platform.backEnd == .secretService ? OwnItems(platform.store, profile.vaultID) : platform.store
            self.init(store, folder, platform.backEnd.rawValue)
        }
    }

    init(passphrase: Secret, _ folder: ProfileFolder) {
        self.init(SealedFile(folder.vault, guardedBy: PassphraseGuard { passphrase }), folder, Kind.passphrase.rawValue)
    }

    private init(_ store: any ItemStore, _ folder: ProfileFolder, _ backEnd: String) {
        vault = Vault(store, locks: VaultLocks(folder: folder.path))
        self.backEnd = backEnd
    }

    private static func platform(_ folder: ProfileFolder) throws(Fault) -> PlatformVault {
        do {
            return try PlatformVault(folder: folder.platformVault)
        } catch {
            throw fault(error)
        }
    }

    /// Makes sure that it takes something and gives it back, so that what is wrong shows before somebody signs in.
    func prove() throws(Fault) {
        do {
            let name = try ItemName(service: "countersign", account: "profile add")
            try vault.write(.bytes(Secret(random: 16)), to: name)
            guard try vault.read(name).certain() != nil else {
                throw VaultProblem.failed("it does not keep what it is given")
            }
            try vault.erase(name)
        } catch let problem as VaultProblem {
            throw ProfileVault.fault(problem)
        } catch {
            throw Fault(.failed, "the profile's vault: \(error)")
        }
    }

    static func fault(_ problem: VaultProblem) -> Fault {
        switch problem {
        case .locked(let detail), .failed(let detail), .badName(let detail):
            Fault(.failed, "the profile's vault: \(detail)")
        case .changed: Fault(.failed, "the profile's vault: another command wrote to it; try again")
        }
    }
}

/// A profile's items in a keyring that all of its owner's profiles share: the names of others' are not seen.
struct OwnItems: ItemStore {
    private let inner: any ItemStore
    private let mark: String

    /// `profile` tells it from all others.
    init(_ inner: any ItemStore, _ profile: String) {
        self.inner = inner
        mark = " of profile \(profile)"
    }

    func find(_ name: ItemName) -> Reading<Secret> {
        do {
            return inner.find(try marked(name))
        } catch {
            return Reading(error)
        }
    }

    func names() throws(VaultProblem) -> [ItemName] {
        var own: [ItemName] = []
        for name in try inner.names() where name.account.hasSuffix(mark) {
            own.append(try ItemName(service: name.service, account: String(name.account.dropLast(mark.count))))
        }
        return own
    }

    func put(_ bytes: Secret, at name: ItemName) throws(VaultProblem) { try inner.put(bytes, at: marked(name)) }

    func remove(_ name: ItemName) throws(VaultProblem) { try inner.remove(marked(name)) }

    private func marked(_ name: ItemName) throws(VaultProblem) -> ItemName {
        try ItemName(service: name.service, account: name.account + mark)
    }
}
