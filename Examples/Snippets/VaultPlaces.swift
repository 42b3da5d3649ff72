// Where a vault is.
import CountersignVault

/// The machine's own: the keychain on Apple's platforms; on Linux the keyring, the TPM, or systemd-creds.
let usual = Vault(.platform)

/// Linux: in a folder of the app's own, asking for a passphrase where the machine has nothing better.
func openWithAPassphrase(askFor prompt: @escaping @Sendable (String) async -> String?) -> Vault {
    Vault(.platform(folder: "/var/lib/example/vault") { await prompt("The vault's passphrase") })
}

/// A service without a keyring. Whoever copies the folder has what is in it.
let service = Vault(.folder("/var/lib/example/vault"))

/// In a folder of its own, and who installs the app again is still signed in.
let place = VaultPlace.platform(folder: "/var/lib/example/vault")
    .afterReinstall(.keep, services: ["com.example.app"])

/// The rule that is in force where none is named.
let forgetful = VaultPlace.platform.afterReinstall(ReinstallRule.forget)

/// One vault for two users of it.
let shared = VaultPlace.using(usual)
