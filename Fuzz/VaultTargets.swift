// Stored vault records, and the credentials that older programs left.
import CountersignSeal
import CountersignWire

@testable import CountersignVault

/// Every record of a vault, sealed or not: an accepted record is written back unchanged, and does not open
/// without its key.
@Sendable func fuzzVault(_ bytes: Span<UInt8>) {
    let stored = bytes.withUnsafeBufferPointer { Array($0) }
    if let (head, sealed) = try? SealedFileHeader.read(stored) {
        precondition(head.bytes + sealed == stored, "a head with two spellings")
    }
    let secret = Secret(copying: bytes)
    if let table = ItemTable(secret) {
        // The same items, possibly in another order.
        let again = ItemTable(table.contents)
        precondition(table.contents.count == stored.count && again?.items.count == table.items.count)
        for (name, item) in table.items {
            precondition(again?.items[name].map(exposed) == exposed(item), "an item that is lost")
        }
    }
    if let item = VaultItem(stored: secret) { precondition(exposed(item.stored) == stored) }
    guard let name = try? ItemName(service: "fuzz", account: "fuzz") else { preconditionFailure("no name") }
    if let box = PresenceSealedSecret(stored, for: name) {
        precondition(box.bytes == stored && box.underFingerprint?.isEmpty != true)
        precondition(
            box.open(Secret(copying: [UInt8](repeating: 7, count: 32).span)) == nil, "opens for nobody's key")
    }
    // Without a passphrase, opening fails before the key derivation.
    precondition((try? PassphraseGuard(ask: { nil }).open(stored)) == nil)
}

/// A user's name and password in Base64, one line each: the migration moves that password to that account.
@Sendable func fuzzRemembered(_ bytes: Span<UInt8>) {
    let lines = bytes.text.split(separator: "\n", maxSplits: 1, omittingEmptySubsequences: false).map(
        String.init)
    guard lines.count == 2 else { return }
    let remains = LegacyDefaultsItems(userName: lines[0], remembers: .on, password: lines[1])
    guard let all = try? remains.credentials(encodedAs: .base64, service: "fuzz") else {
        precondition((try? ItemName(service: "fuzz", account: lines[0])) == nil || lines[0].isEmpty)
        return
    }
    guard case .move(let contents, let name) = all.first?.fate else { return }
    precondition(name.account == lines[0], "another's password")
    let password = contents.bytes
    precondition(Base64.encode(password.span, as: .standard) == lines[1], "another password")
}

private func exposed(_ secret: Secret) -> [UInt8] {
    secret.withExposedBytes { span in span.indices.map { span[$0] } }
}
