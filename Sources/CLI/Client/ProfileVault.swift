import CountersignSeal
import CountersignTransport
import CountersignVault
import CountersignWire
import Glibc

/// Where a profile keeps its login.
struct ProfileVault: Sendable {
    enum Kind: String, Sendable, CaseIterable {
        /// A sealed file in the profile's folder, with its key beside it. The default, because it opens
        /// without a person, over ssh and in unattended scripts.
        case file
        /// A sealed file under a passphrase, which is asked for.
        case passphrase
    }

    let vault: Vault

    /// Asks for a passphrase where it takes one: now, because later a lock may be held.
    init(_ profile: Profile, folder: ProfileFolder, run: Invocation) throws(OperationalError) {
        switch profile.vault {
        case .file:
            self.init(folder: folder, guardedBy: KeyFileGuard(folder.vaultKey))
        case .passphrase:
            try self.init(passphrase: VaultPassphrase(run: run).read(), folder: folder)
        }
    }

    init(passphrase: Secret, folder: ProfileFolder) {
        self.init(folder: folder, guardedBy: PassphraseGuard { passphrase })
    }

    private init(folder: ProfileFolder, guardedBy keyGuard: any KeyGuard) {
        vault = Vault(
            SealedFile(folder.vault, guardedBy: keyGuard), locks: VaultLocks(folder: folder.path))
    }

    /// Checks that the vault stores a value and returns it, so that a fault shows before a user signs in.
    func verifyUsable() throws(OperationalError) {
        do throws(VaultError) {
            let name = try ItemName(service: "countersign", account: "profile add")
            try vault.write(.bytes(Secret(random: 16)), to: name)
            guard try vault.read(name).get() != nil else {
                throw VaultError.failed("it does not keep what it is given")
            }
            try vault.erase(name)
        } catch {
            throw ProfileVault.operationalError(for: error)
        }
    }

    static func operationalError(for problem: VaultError) -> OperationalError {
        switch problem {
        case .locked(let detail), .failed(let detail), .badName(let detail):
            OperationalError(.failed, message: "the profile's vault: \(detail)")
        case .changed:
            OperationalError(.failed, message: "the profile's vault: another command wrote to it; try again")
        }
    }
}
