import CountersignSeal
import CountersignVault
import Glibc
import VaultContract

/// One vault and what is asked of it.
struct VaultDriver: Sendable {
    let backEnd: String
    let folder: String
    let vault: Vault

    init(backEnd: String, folder: String) throws(VaultError) {
        self.backEnd = backEnd
        self.folder = folder
        vault = try VaultDriver.vault(backEnd, folder)
    }

    static let passphrase = variable("VAULT_PASSPHRASE")

    private static func vault(_ backEnd: String, _ folder: String) throws(VaultError) -> Vault {
        switch backEnd {
        case "folder": return Vault(.folder(folder))
        case "place":
            return Vault(
                .platform(folder: folder) { getenv("VAULT_PASSPHRASE").map { String(cString: $0) } })
        case "passphrase":
            let file = SealedFile(
                "\(folder)/items.sealed",
                guardedBy: PassphraseGuard(.init(memory: 64, passes: 1), ask: passphrase))
            return Vault(file, locks: VaultLocks(folder: folder))
        default: throw .failed("no back end \(backEnd)")
        }
    }

    func run(_ command: String, _ words: [String]) async throws(VaultError) {
        switch (command, words.count) {
        case ("contract", 0): try contract()
        case ("names", 0): for name in try vault.list() { Line.out("\(name)") }
        case ("read", 2): try read(ItemName(service: words[0], account: words[1]))
        case ("reread", 2):
            while readLine() != nil { try read(ItemName(service: words[0], account: words[1])) }
        case ("remove", 2): try vault.erase(ItemName(service: words[0], account: words[1]))
        case ("write", 3):
            try vault.write(
                .text(VaultDriver.secret(words[2])), to: ItemName(service: words[0], account: words[1]))
        case ("count", 3): try count(ItemName(service: words[0], account: words[1]), Int(words[2]) ?? 0)
        case ("load", 2): try load(ItemName(service: words[0], account: words[1]))
        case ("lease", 1): try await lease(.milliseconds(Int(words[0]) ?? 0))
        default: try await runPresence(command, words)
        }
    }

    static func secret(_ text: String) -> Secret { Secret(copying: Array(text.utf8).span) }

    static func text(_ secret: Secret) -> String {
        secret.withExposedBytes { span in String(decoding: span.indices.map { span[$0] }, as: UTF8.self) }
    }

    private func contract() throws(VaultError) {
        let (backEnd, folder, vault) = (backEnd, folder, vault)
        let results = VaultContract(vault, reopen: { (try? VaultDriver.vault(backEnd, folder)) ?? vault })
            .run()
        for result in results {
            Line.out("\(result.wrong.isEmpty ? "ok" : "WRONG") \(result.rule) \(result.wrong)")
        }
        guard results.allSatisfy({ $0.wrong.isEmpty }) else { throw .failed("the contract is broken") }
    }

    private func read(_ name: ItemName) throws(VaultError) {
        guard let item = try vault.read(name).get() else { return Line.out("absent") }
        Line.out("value \(VaultDriver.text(item.contents.secret))")
    }

    private func count(_ name: ItemName, _ times: Int) throws(VaultError) {
        var (done, beaten) = (0, 0)
        while done < times {
            let item = try vault.read(name).get()
            let number = item.flatMap { Int(VaultDriver.text($0.contents.secret)) } ?? 0
            let expected: Vault.Expectation = item.map { .version($0.version) } ?? .absent
            do {
                try vault.write(.text(VaultDriver.secret("\(number + 1)")), to: name, expecting: expected)
                done += 1
            } catch {
                guard error == .changed else { throw error }
                beaten += 1
            }
        }
        Line.out("beaten \(beaten)")
    }

    private func load(_ name: ItemName) throws(VaultError) {
        var number = 0
        while true {
            number += 1
            try vault.write(.text(VaultDriver.secret("\(number)")), to: name)
            Line.out("\(number)")
        }
    }

    private func lease(_ patience: Duration) async throws(VaultError) {
        let lease = try await vault.lease(within: patience)
        Line.out("leased")
        while getchar() != EOF {}
        lease.release()
    }
}
