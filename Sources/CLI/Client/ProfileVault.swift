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
            try LegacyProfileVault(folder: folder).migrate(
                to: ProfileSession.itemName(of: profile, at: Origin.split(profile.url).origin))
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

/// A profile's vault as earlier builds wrote it: one secret, sealed under the key beside it. What is in it
/// becomes an item of the vault that takes its place, under the same key.
struct LegacyProfileVault {
    private static let binding = SealBinding(kind: "client-vault", row: "vault")
    /// What a file of today begins with.
    private static let magic = Array("CSV1".utf8)
    /// The same key sealed it, so none is longer than what a client keeps.
    private static let most = 1 << 20

    let folder: ProfileFolder

    /// Nothing where there is none. At every moment the one or the other is there, whole.
    func migrate(to name: ItemName) throws(OperationalError) {
        guard try exists else { return }
        do {
            let lock = try FileLock.take("\(folder.vault).lock", within: .seconds(10))
            defer { lock.release() }
            // Another command may have been first.
            guard try exists else { return }
            let draft = "\(folder.vault).moving"
            unlink(draft)
            let store = SealedFile(draft, guardedBy: KeyFileGuard(folder.vaultKey))
            try Vault(store, locks: VaultLocks(folder: folder.path)).write(.bytes(try contents()), to: name)
            guard rename(draft, folder.vault) == 0 else {
                throw Errno.error("\(folder.vault): cannot be replaced")
            }
        } catch let problem as VaultError {
            throw ProfileVault.operationalError(for: problem)
        } catch {
            throw OperationalError(error, in: folder.vault)
        }
    }

    private var exists: Bool {
        get throws(OperationalError) {
            guard access(folder.vault, F_OK) == 0 else { return false }
            return try !bytes().starts(with: LegacyProfileVault.magic)
        }
    }

    private func contents() throws(OperationalError) -> Secret {
        let text = try Console.readFile(folder.vaultKey, limit: MasterKey.count)
        guard let key = MasterKey(Secret(copying: text.span)),
            let contents = try? key.open(bytes(), as: LegacyProfileVault.binding)
        else {
            throw OperationalError(
                .failed, message: "\(folder.vault): does not open: altered, or sealed with another key")
        }
        return contents
    }

    private func bytes() throws(OperationalError) -> [UInt8] {
        try Console.readFile(folder.vault, limit: LegacyProfileVault.most)
    }
}
