import CountersignClient
import CountersignVault
import CountersignWire

/// A profile's vault: a sealed file in its folder, with the key beside it.
enum ProfileVault {
    static func keeper(_ folder: ProfileFolder, host: String) throws(Fault) -> StateKeeper {
        let store = SealedFile(folder.vault, guardedBy: KeyFileGuard("\(folder.vault).key"))
        let vault = Vault(store, locks: VaultLocks(folder: folder.path))
        do {
            return StateKeeper(vault, try StateKeeper.item(host: host, app: nil))
        } catch {
            throw ClientDesk.fault(error, folder.vault)
        }
    }
}
