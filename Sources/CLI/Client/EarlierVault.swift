import CountersignSeal
import CountersignVault
import CountersignWire
import Glibc

/// A profile's vault as earlier builds wrote it: one secret, sealed under the key beside it. What is in it becomes an item of the vault
/// that takes its place, under the same key.
struct EarlierVault {
    private static let binding = SealBinding(kind: "client-vault", row: "vault")
    /// What a file of today begins with.
    private static let magic = Array("CSV1".utf8)
    /// The same key sealed it, so none is longer than what a client keeps.
    private static let most = 1 << 20

    let folder: ProfileFolder

    /// Nothing where there is none. At every moment the one or the other is there, whole.
    func move(to name: ItemName) throws(Fault) {
        guard try isThere else { return }
        do {
            let lock = try FileLock.take("\(folder.vault).lock", within: .seconds(10))
            defer { lock.release() }
            // Another command may have been first.
            guard try isThere else { return }
            let draft = "\(folder.vault).moving"
            unlink(draft)
            let store = SealedFile(draft, guardedBy: KeyFileGuard(folder.vaultKey))
            try Vault(store, locks: VaultLocks(folder: folder.path)).write(.bytes(try contents()), to: name)
            guard rename(draft, folder.vault) == 0 else {
                throw SystemProblem.fault("\(folder.vault): cannot be replaced")
            }
        } catch let problem as VaultProblem {
            throw ProfileVault.fault(problem)
        } catch {
            throw (error as? Fault) ?? Fault(.failed, "\(folder.vault): \(error)")
        }
    }

    private var isThere: Bool {
        get throws(Fault) {
            guard access(folder.vault, F_OK) == 0 else { return false }
            return try !bytes().starts(with: EarlierVault.magic)
        }
    }

    private func contents() throws(Fault) -> Secret {
        let text = try Console.readFile(folder.vaultKey, limit: MasterKey.count)
        guard let key = MasterKey(Secret(copying: text.span)),
            let contents = try? key.open(bytes(), as: EarlierVault.binding)
        else { throw Fault(.failed, "\(folder.vault): does not open: altered, or sealed with another key") }
        return contents
    }

    private func bytes() throws(Fault) -> [UInt8] { try Console.readFile(folder.vault, limit: EarlierVault.most) }
}
