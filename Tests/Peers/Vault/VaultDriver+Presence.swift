import CountersignSeal
import CountersignVault
import Glibc

extension VaultDriver {
    /// `bind SERVICE ACCOUNT TEXT` and `release SERVICE ACCOUNT`: a secret bound to presence. VAULT_PASSWORD
    /// is what the person types (unset: gives up), VAULT_PAM the folder with PAM's service `countersign`,
    /// VAULT_FINGER whose fingers count (unset: no reader is asked), VAULT_FINGER_KEY the file with the key
    /// that a finger opens, VAULT_PATIENCE for how many seconds one is waited for (unset: 1).
    func runPresence(_ command: String, _ words: [String]) async throws(VaultError) {
        switch (command, words.count) {
        case ("bind", 3):
            let name = try ItemName(service: words[0], account: words[1])
            switch try await presence().setBytes(Array(words[2].utf8), at: name, in: vault, reason: "test") {
            case .present: Line.out("bound")
            case .notPresent(let step, _): Line.out("not bound: \(step)")
            }
        case ("release", 2):
            let name = try ItemName(service: words[0], account: words[1])
            switch try await presence().bytes(name, in: vault, reason: "test") {
            case .present(let bytes): Line.out("present \(String(decoding: bytes, as: UTF8.self))")
            case .notPresent(let step, let detail): Line.out("\(step): \(detail)")
            }
        default: throw .failed("no command \(command) with \(words.count) words")
        }
    }

    private func presence() -> UserPresence {
        let finger = getenv("VAULT_FINGER").map { FprintdReader(user: String(cString: $0)) }
        let fingerKey = getenv("VAULT_FINGER_KEY").map { KeyFileGuard(String(cString: $0)) }
        let folder = getenv("VAULT_PAM").map { String(cString: $0) }
        let patience = getenv("VAULT_PATIENCE").flatMap { Int(String(cString: $0)) } ?? 1
        return UserPresence(
            MachinePresence(
                fingerprint: finger,
                check: PAMPasswordCheck(service: "countersign", user: "root", folder: folder),
                fingerprintGuard: fingerKey, cost: .init(memory: 64, passes: 1), patience: .seconds(patience),
                password: { _ in getenv("VAULT_PASSWORD").map { String(cString: $0) } }))
    }

    static func variable(_ name: String) -> @Sendable () -> Secret? {
        { getenv(name).map { VaultDriver.secret(String(cString: $0)) } }
    }
}
