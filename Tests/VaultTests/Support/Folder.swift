import CountersignSeal
import Foundation

@testable import CountersignVault

/// A folder for the length of `body`.
func withFolder<Result>(_ body: (String) throws -> Result) throws -> Result {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("vault-\(UUID().uuidString)")
        .path
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    return try body(folder)
}

func secret(_ text: String) -> Secret { Secret(copying: Array(text.utf8).span) }

func text(_ secret: Secret?) -> String? {
    secret.map { secret in
        secret.withExposedBytes { span in String(decoding: span.indices.map { span[$0] }, as: UTF8.self) }
    }
}

func item(_ account: String, _ service: String = "test") throws -> ItemName {
    try ItemName(service: service, account: account)
}

/// What a reading says, for comparing.
func kind<Value>(_ reading: VaultReadResult<Value>) -> String {
    switch reading {
    case .value: "value"
    case .absent: "absent"
    case .locked: "locked"
    case .failed: "failed"
    }
}

/// What a call ended with: `done`, or the problem's name.
func ending<Result>(_ call: () throws(VaultError) -> Result) -> String {
    do {
        _ = try call()
        return "done"
    } catch {
        switch error {
        case .badName: return "bad name"
        case .locked: return "locked"
        case .changed: return "changed"
        case .failed: return "failed"
        }
    }
}

/// A passphrase at a price that tests can pay.
func cheap(_ passphrase: String?) -> PassphraseGuard {
    let typed = passphrase.map(secret)
    return PassphraseGuard(.init(memory: 64, passes: 1), ask: { typed })
}

/// A folder for as long as the value lives.
final class Folder: Sendable {
    let path = FileManager.default.temporaryDirectory.appendingPathComponent("vault-\(UUID().uuidString)")
        .path

    init() throws { try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true) }

    deinit { try? FileManager.default.removeItem(atPath: path) }
}
