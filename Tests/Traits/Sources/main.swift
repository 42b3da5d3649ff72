// What a build of the SDK does without some of its traits: a client over a key file, and a vault under a
// passphrase, work as ever; each part that is left out fails, and names its trait. Arguments: a folder of its
// own, the traits it was built with.
import Countersign
import Glibc

let arguments = Array(CommandLine.arguments.dropFirst())
guard let folder = arguments.first else {
    print("usage: traits-program FOLDER [TRAIT…]")
    exit(2)
}
let traits = Set(arguments.dropFirst())
let checks = Checks(folder: folder)
do {
    try await checks.client()
    try await checks.platform(traits)
    if !traits.contains("SecretService") { try await checks.secretService() }
    if !traits.contains("TPM") { try await checks.hardware() }
    if !traits.contains("Presence") { try await checks.presence() }
} catch {
    print("WRONG: \(error)")
    exit(1)
}
print("ok")
