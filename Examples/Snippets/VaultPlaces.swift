// Where a vault stores its items.
import CountersignVault

/// The system's own place: the keychain on Apple's platforms; on Linux a file with its key beside it.
let usual = Vault(.platform)

/// Linux: a file in the given folder, sealed under a passphrase.
func openWithAPassphrase(askFor prompt: @escaping @Sendable (String) async -> String?) -> Vault {
    Vault(.platform(folder: "/var/lib/example/vault") { await prompt("The vault's passphrase") })
}

/// For a service. A copy of the folder suffices to read its contents.
let service = Vault(.folder("/var/lib/example/vault"))

/// In the given folder, and kept when the app is reinstalled: the user remains signed in.
let place = VaultPlace.platform(folder: "/var/lib/example/vault")
    .afterReinstall(.keep, services: ["com.example.app"])

/// The default rule.
let forgetful = VaultPlace.platform.afterReinstall(ReinstallRule.forget)

/// One vault that the client and the app share.
let shared = VaultPlace.using(usual)
