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

/// The keyed hash (an HMAC) of an erased account's name or user id. Without the deployment's key, neither can
/// be computed from it. It identifies the erased name or id, so that no other account gets it: the backend
/// would treat that account as the erased one.
package struct AccountTombstone: Sendable, Hashable {
    package let bytes: [UInt8]

    package init(_ bytes: [UInt8]) { self.bytes = bytes }
}

/// The tombstones of one account.
package struct AccountTombstones: Sendable {
    package let name: AccountTombstone
    /// Nil if the backend gave the account no user id.
    package let userID: AccountTombstone?

    package init(name: AccountTombstone, userID: AccountTombstone?) {
        (self.name, self.userID) = (name, userID)
    }
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

    func tombstones(of name: AccountName, userID: Int64?, in app: AppName) -> AccountTombstones {
        AccountTombstones(
            name: tombstone(of: name.bytes, in: app),
            userID: userID.map { tombstone(of: [0] + $0.bigEndianBytes, in: app) })
    }

    /// `HMAC-SHA256(key, app ‖ 0 ‖ name)`, or `app ‖ 0 ‖ 0 ‖ user id (8 bytes)`. Names of apps and accounts
    /// contain no zero byte.
    private func tombstone(of identity: [UInt8], in app: AppName) -> AccountTombstone {
        let digest = hmac.authenticate((Array(app.description.utf8) + [0] + identity).span)
        return AccountTombstone(digest.indices.map { digest[$0] })
    }
}
