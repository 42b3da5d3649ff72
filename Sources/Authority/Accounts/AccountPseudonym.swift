import CountersignSeal
import CountersignWire

/// The random name of an account in the audit log. The account's row maps it to the account's name, and the
/// erasure of the account removes it there: nothing then leads from the log's records to the person.
package struct AccountPseudonym: Sendable, Hashable, CustomStringConvertible {
    package static let count = 16

    package let bytes: [UInt8]

    /// A new random pseudonym.
    package init() { bytes = SystemRandom().bytes(AccountPseudonym.count) }

    /// Nil unless there are 16 `bytes`.
    package init?(_ bytes: [UInt8]) {
        guard bytes.count == AccountPseudonym.count else { return nil }
        self.bytes = bytes
    }

    /// Parses what ``description`` writes; nil for anything else.
    package init?(_ text: String) {
        guard text.hasPrefix("a_"), let bytes = Base64.decode(String(text.dropFirst(2)), as: .url) else {
            return nil
        }
        self.init(bytes)
    }

    package var description: String { "a_" + Base64.encode(bytes.span, as: .url) }
}

/// What remains of an erased account's name: an HMAC that tells whether a name is that one, and from which no
/// name can be computed without the deployment's key. It keeps the name from being taken again, because the
/// backend would take the new account for the erased one.
package struct AccountTombstone: Sendable, Hashable {
    package let bytes: [UInt8]

    package init(_ bytes: [UInt8]) { self.bytes = bytes }
}

/// Computes tombstones under a key of their own, which is sealed under the master key and stays when that is
/// replaced.
struct AccountTombstoneKey: Sendable {
    let codes: AccountCodeKey
    static let binding = SealBinding(kind: "tombstone-key", row: "tombstone-key")
    private let hmac: HMACSHA256

    /// The store's key; created at first use.
    init(in store: any Store, under masterKey: MasterKeyRing) throws(OperationalError) {
        var sealed = try store.value(of: .tombstoneKey)
        if sealed == nil {
            // Under a new key, no erased name would be known as one.
            guard try !store.hasTombstones() else {
                throw OperationalError(
                    .failed,
                    message: "tombstone key: it was removed, and erased names need it; restore a backup")
            }
            sealed = try store.setIfAbsent(
                .tombstoneKey,
                to: masterKey.seal(
                    Secret(random: 32), as: AccountTombstoneKey.binding, random: SystemRandom()))
        }
        guard let key = try? masterKey.open(sealed ?? [], as: AccountTombstoneKey.binding) else {
            throw OperationalError(
                .failed, message: "tombstone key: its sealed value does not open; the row was altered")
        }
        hmac = key.withExposedBytes { HMACSHA256(key: $0) }
        codes = AccountCodeKey(derivedFrom: key)
    }

    /// `HMAC-SHA256(key, app ‖ 0 ‖ name)`. The name of an app has no zero byte.
    func tombstone(of name: AccountName, in app: AppName) -> AccountTombstone {
        let digest = hmac.authenticate((Array(app.description.utf8) + [0] + name.bytes).span)
        return AccountTombstone(digest.indices.map { digest[$0] })
    }
}
