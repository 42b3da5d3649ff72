// The vault for programs that are not written in Swift, so that tests can start two at once, end one in the
// middle, and take its disk, its keyring or its TPM away. Not part of any product.
//
//   vault-driver BACK-END FOLDER contract           the contract suite vault-driver BACK-END FOLDER
//   read|remove SERVICE ACCOUNT vault-driver BACK-END FOLDER write SERVICE ACCOUNT TEXT vault-driver BACK-END
//   FOLDER reread SERVICE ACCOUNT    reads at each line of standard input vault-driver BACK-END FOLDER names
//   vault-driver BACK-END FOLDER count SERVICE ACCOUNT N   adds one, N times, by compare-and-swap
//   vault-driver BACK-END FOLDER load SERVICE ACCOUNT      writes 1, 2, … until it is killed; says each once
//   it is kept vault-driver BACK-END FOLDER lease PATIENCE-MS         says `leased`, holds it until standard
//   input ends vault-driver tpm=TCTI FOLDER device-keys        the contract of device keys, over a TPM
//   vault-driver platform FOLDER choice             which back end, and why not the others
//
// BACK-END: platform, place (the same as an app has it; items of service `countersign` are forgotten by a new
// installation unless VAULT_KEEPS is set), secret-service, systemd-creds, passphrase, tpm=TCTI. The
// passphrase is VAULT_PASSPHRASE's. Exit 0 done, 1 refused: `locked`, `changed` or `failed` on standard
// output. A presence's are in Presence.swift.
import CountersignSeal
import CountersignVault
import Glibc

let words = Array(CommandLine.arguments.dropFirst())
guard words.count >= 3 else {
    say("usage: see main.swift")
    exit(2)
}
do {
    let driver = try Driver(backEnd: words[0], folder: words[1])
    try await driver.run(words[2], Array(words[3...]))
} catch {
    switch error {
    case .locked(let detail): say("locked: \(detail)")
    case .changed: say("changed")
    case .failed(let detail), .badName(let detail): say("failed: \(detail)")
    }
    exit(1)
}
