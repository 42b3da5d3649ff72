import CountersignSeal
import CountersignVault
import Glibc

/// The vault for programs that are not written in Swift, so that tests can start two at once, end one in the
/// middle, and take its disk away. `test-peers vault BACK-END FOLDER` and:
///
///     contract                     the contract suite
///     read|remove SERVICE ACCOUNT
///     write SERVICE ACCOUNT TEXT
///     reread SERVICE ACCOUNT       reads at each line of standard input
///     names
///     count SERVICE ACCOUNT N      adds one, N times, by compare-and-swap
///     load SERVICE ACCOUNT         writes 1, 2, … until it is killed; prints each once it is stored
///     lease PATIENCE-MS            prints `leased`, and holds the lease until standard input ends
///
/// BACK-END: folder, place (as an app has it, under a passphrase), passphrase (the same at a low cost). The
/// passphrase is VAULT_PASSPHRASE's. Exit 0 done, 1 refused: `locked`, `changed` or `failed` on standard
/// output. The commands of presence are in VaultDriver+Presence.swift.
enum VaultPeer {
    static func run(_ words: [String]) async -> Never {
        guard words.count >= 3 else {
            Line.out("usage: see VaultPeer.swift")
            exit(2)
        }
        do {
            let driver = try VaultDriver(backEnd: words[0], folder: words[1])
            try await driver.run(words[2], Array(words[3...]))
            exit(0)
        } catch {
            switch error {
            case .locked(let detail): Line.out("locked: \(detail)")
            case .changed: Line.out("changed")
            case .failed(let detail), .badName(let detail): Line.out("failed: \(detail)")
            }
            exit(1)
        }
    }
}
