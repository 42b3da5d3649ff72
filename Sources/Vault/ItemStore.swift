import CountersignSeal

/// A place that keeps secrets by name: what a back end fulfils, and all that it decides. It knows nothing of
/// versions and kinds; those are ``Vault``'s, the same for all of them.
package protocol ItemStore: Sendable {
    /// Absent only where that is certain: a store that is closed, or answers strangely, says so instead.
    func find(_ name: ItemName) -> VaultReadResult<Secret>

    /// All of them, in no order. Fails where some may be hidden, rather than leave them out.
    func names() throws(VaultError) -> [ItemName]

    /// Adds or replaces. Durable once it returns; a crash leaves the old bytes or the new.
    func put(_ bytes: Secret, at name: ItemName) throws(VaultError)

    /// Nothing is left of it; one that is not there is well.
    func remove(_ name: ItemName) throws(VaultError)
}

/// The two words under which a vault keeps an item, as keychains have them: the service (which app or
/// purpose) and the account (whose).
///
/// Compared by bytes. Swift's `String` takes a letter and the same letter put together from two marks for
/// equal, and no back end does.
public struct ItemName: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// 1 to 255 bytes of UTF-8 without control characters.
    public let service: String
    /// The same.
    public let account: String

    /// The most bytes of either part.
    public static let longest = 255

    /// Throws ``VaultError/badName(_:)`` where one of the two is not as said.
    public init(service: String, account: String) throws(VaultError) {
        try ItemName.check(service, part: "service")
        try ItemName.check(account, part: "account")
        self.service = service
        self.account = account
    }

    private static func check(_ text: String, part: String) throws(VaultError) {
        guard (1...longest).contains(text.utf8.count) else {
            throw .badName("\(part): \(text.utf8.count) bytes; expected 1 to \(longest)")
        }
        guard text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw .badName("\(part): holds a control character")
        }
    }

    /// By bytes.
    public static func == (left: ItemName, right: ItemName) -> Bool {
        left.service.utf8.elementsEqual(right.service.utf8)
            && left.account.utf8.elementsEqual(right.account.utf8)
    }

    /// As ``==(_:_:)`` compares.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(Array(service.utf8))
        hasher.combine(Array(account.utf8))
    }

    /// By service, then by account, each by bytes.
    public static func < (left: ItemName, right: ItemName) -> Bool {
        left.service.utf8.elementsEqual(right.service.utf8)
            ? left.account.utf8.lexicographicallyPrecedes(right.account.utf8)
            : left.service.utf8.lexicographicallyPrecedes(right.service.utf8)
    }

    /// `service / account`.
    public var description: String { "\(service) / \(account)" }
}
