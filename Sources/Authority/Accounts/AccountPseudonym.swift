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

/// The keyed hash (an HMAC) of an erased account's name or user id, or of a user id that an account had
/// before its present one. Without the deployment's key, neither can be computed from it. It identifies the
/// name or id, so that no other account gets it: the backend would treat that account as the former one.
package struct AccountTombstone: Sendable, Hashable, Comparable {
    package let bytes: [UInt8]

    package init(_ bytes: [UInt8]) { self.bytes = bytes }

    package static func < (left: AccountTombstone, right: AccountTombstone) -> Bool {
        left.bytes.lexicographicallyPrecedes(right.bytes)
    }
}

/// What a change of an account's user id compares and keeps. The backend may still refer to the former id, so
/// no other account gets it; the account itself may take it back.
package struct UserIDTombstones: Sendable {
    /// A tombstone of an id, and the same with the account that had the id.
    package struct Pair: Sendable {
        package let id: AccountTombstone
        package let idOfAccount: AccountTombstone
    }

    /// Of the id that the account gets; nil if it gets none.
    package let new: Pair?
    /// Of the id that it has, by which the store finds that it has not changed since; nil if it has none.
    package let former: Pair?
    package let formerID: Int64?
}

/// The tombstones of one account.
package struct AccountTombstones: Sendable {
    package let name: AccountTombstone
    /// Nil if the backend gave the account no user id.
    package let userID: AccountTombstone?
    /// The first and the last that ``UserIDTombstones/Pair/idOfAccount`` can be for this account: an erasure
    /// removes them, so that no former id leads to the account. Nil for an account that is added.
    package let formerIDs: ClosedRange<AccountTombstone>?

    package init(
        name: AccountTombstone, userID: AccountTombstone?, formerIDs: ClosedRange<AccountTombstone>? = nil
    ) {
        (self.name, self.userID, self.formerIDs) = (name, userID, formerIDs)
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

    /// Without `number`, for an account that is added.
    func tombstones(
        of name: AccountName, userID: Int64?, numbered number: Int64? = nil, in app: AppName
    ) -> AccountTombstones {
        AccountTombstones(
            name: tombstone(of: name.bytes, in: app),
            userID: userID.map { tombstone(ofID: $0, in: app) },
            formerIDs: number.map { formerIDs(of: $0, in: app) })
    }

    /// For the account `number`, whose user id changes.
    func tombstones(
        ofID former: Int64?, to new: Int64?, of number: Int64, in app: AppName
    ) -> UserIDTombstones {
        func pair(_ id: Int64) -> UserIDTombstones.Pair {
            let own = tombstone(of: [0, 0] + number.bigEndianBytes + id.bigEndianBytes, in: app)
            return UserIDTombstones.Pair(
                id: tombstone(ofID: id, in: app),
                idOfAccount: AccountTombstone(accountHalf(of: number, in: app) + own.bytes.prefix(16)))
        }
        return UserIDTombstones(new: new.map(pair), former: former.map(pair), formerID: former)
    }

    private func formerIDs(of number: Int64, in app: AppName) -> ClosedRange<AccountTombstone> {
        let half = accountHalf(of: number, in: app)
        func end(_ byte: UInt8) -> AccountTombstone {
            AccountTombstone(half + [UInt8](repeating: byte, count: 16))
        }
        return end(0)...end(0xFF)
    }

    private func tombstone(ofID id: Int64, in app: AppName) -> AccountTombstone {
        tombstone(of: [0] + id.bigEndianBytes, in: app)
    }

    /// The first half of the tombstones that say which account had an id.
    private func accountHalf(of number: Int64, in app: AppName) -> [UInt8] {
        Array(tombstone(of: [0, 0] + number.bigEndianBytes, in: app).bytes.prefix(16))
    }

    /// `HMAC-SHA256(key, app ‖ 0 ‖ name)`, or `app ‖ 0 ‖ 0 ‖ user id (8 bytes)`. The tombstone of an id with
    /// its account has 16 bytes of that of `app ‖ 0 ‖ 0 ‖ 0 ‖ account's number (8 bytes)`, and 16 of the same
    /// with `‖ user id (8 bytes)`. Names of apps and accounts contain no zero byte.
    private func tombstone(of identity: [UInt8], in app: AppName) -> AccountTombstone {
        let digest = hmac.authenticate((Array(app.description.utf8) + [0] + identity).span)
        return AccountTombstone(digest.indices.map { digest[$0] })
    }
}
