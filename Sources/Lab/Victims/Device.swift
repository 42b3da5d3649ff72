import Countersign
import CountersignSeal
import CountersignVault

/// What a victim holds in his hand, and how he came by it.
package struct Device: Sendable {
    /// `http://bank.test:12345`, or where he was led to.
    package var baseURL: String
    /// What a backup has.
    package var folder: String
    /// What no backup has: a keychain's own key, which does not leave the device.
    package var enclave: String
    /// By how many seconds its clock is behind.
    package var behind: Int64
    package var trust: Trust
    package var transport: TransportOptions

    var isPlain: Bool { baseURL.hasPrefix("http:") }

    var clock: DeviceClock {
        let (system, behind) = (DeviceClock.system, behind)
        return DeviceClock(wall: { system.wall() - behind }, monotonic: system.monotonic)
    }

    /// A vault whose file is in the backup, and whose key is not: as items of a keychain that are for this device only.
    var vault: Vault {
        let file = SealedFile("\(folder)/items.sealed", guardedBy: KeyFileGuard("\(enclave)/items.key"))
        return Vault(file, locks: VaultLocks(folder: enclave))
    }
}
