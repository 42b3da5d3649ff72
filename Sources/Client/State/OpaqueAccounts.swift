import CountersignSeal
import CountersignVault
import CountersignWire

/// The accounts that are known on this device to sign in by OPAQUE. ``FallbackLogIn`` never sends the
/// password of one.
///
/// An item of the vault, apart from the client's state: it outlives every session. It holds no names, only
/// the first 16 bytes of their HMAC-SHA256 under a key in the same item. An entry is never removed. Once
/// ``capacity`` entries are full, every account counts as known: the client then sends no password.
package struct OpaqueAccounts: Sendable {
    /// Entries.
    static let capacity = 1024

    private let vault: Vault
    private let name: ItemName

    package init(_ vault: Vault, item name: ItemName) {
        self.vault = vault
        self.name = name
    }

    /// The item beside the client's state, `state`.
    package static func item(beside state: ItemName) throws(ClientOperationError) -> ItemName {
        do {
            return try ItemName(service: "\(state.service) opaque", account: state.account)
        } catch {
            throw ClientOperationError(error)
        }
    }

    /// Whether the account is known to sign in by OPAQUE. Throws if the vault cannot be read: nothing may be
    /// concluded then.
    package func contains(_ account: AccountName) throws(ClientOperationError) -> Bool {
        try read().entries?.contains(account) ?? false
    }

    /// Durable once it returns.
    package func insert(_ account: AccountName) throws(ClientOperationError) {
        for _ in 0..<OpaqueAccounts.mostRounds {
            let found = try read()
            var entries = found.entries ?? Entries()
            guard !entries.contains(account) else { return }
            entries.insert(account)
            do throws(VaultError) {
                try vault.write(.bytes(entries.contents), to: name, expecting: found.expectation)
                return
            } catch {
                guard error == .changed else { throw ClientOperationError(error) }
            }
        }
        throw .vaultFailed("\(name): written by others \(OpaqueAccounts.mostRounds) times in a row")
    }

    /// Another process may write first this many times in a row.
    private static let mostRounds = 100

    private func read() throws(ClientOperationError) -> (entries: Entries?, expectation: Vault.Expectation) {
        do throws(VaultError) {
            guard let item = try vault.read(name).get() else { return (nil, .absent) }
            guard let entries = Entries(item.contents.secret) else {
                throw .failed("\(name): holds what this build cannot read")
            }
            return (entries, .version(item.version))
        } catch {
            throw ClientOperationError(error)
        }
    }
}

/// The contents of the item.
private struct Entries {
    private static let (keyTag, digestsTag): (UInt8, UInt8) = (1, 2)
    private static let (keyCount, digestCount) = (32, 16)

    private let key: Secret
    /// Of `digestCount` bytes each.
    private var digests: [[UInt8]]
    /// The parts that a newer build stores beside these.
    private var others: StateParts

    init() {
        key = Secret(random: Entries.keyCount)
        digests = []
        others = StateParts()
    }

    /// Nil if ``contents`` did not write it.
    init?(_ contents: Secret) {
        guard let parts = StateParts(contents), let key = parts[Entries.keyTag],
            key.count == Entries.keyCount,
            let bytes = parts.bytes(Entries.digestsTag), bytes.count.isMultiple(of: Entries.digestCount)
        else { return nil }
        self.key = key
        digests = stride(from: 0, to: bytes.count, by: Entries.digestCount).map { start in
            Array(bytes[start..<start + Entries.digestCount])
        }
        others = parts.unknown([Entries.keyTag, Entries.digestsTag], in: 0...255)
    }

    var contents: Secret {
        var parts = others
        parts[Entries.keyTag] = key
        parts.set(Entries.digestsTag, to: digests.flatMap(\.self))
        return parts.contents
    }

    func contains(_ account: AccountName) -> Bool {
        digests.count >= OpaqueAccounts.capacity || digests.contains(digest(account))
    }

    mutating func insert(_ account: AccountName) { digests.append(digest(account)) }

    private func digest(_ account: AccountName) -> [UInt8] {
        let bytes = account.bytes
        let sum = key.withExposedBytes { HMACSHA256(key: $0) }.authenticate(bytes.span)
        return (0..<Entries.digestCount).map { sum[$0] }
    }
}
