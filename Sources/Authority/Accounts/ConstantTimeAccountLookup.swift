import CountersignGate
import CountersignMemory
import CountersignSeal
import CountersignWire

/// Looks up an account by its name in a time that does not depend on whether it exists: each call makes one
/// lookup by number, one by name that finds a row, and one by name that misses. If the given name has an
/// account, the other one is a name that no account has; if it has none, that of the account that was looked
/// up by number.
final class ConstantTimeAccountLookup: Sendable {
    private let accounts: any AccountStore
    /// A random name that no account has.
    private let absentName = try? AccountName(
        normalizing: "nobody \(Hex.encode(SystemRandom().bytes(16).span))")
    private let reference = ReferenceAccount()

    init(_ accounts: any AccountStore) { self.accounts = accounts }

    /// Only the lookup of the given name can fail: a fault in another row must not tell names apart.
    func account(_ name: AccountName, of app: AppName) throws(OperationalError) -> Account? {
        let account = try accounts.account(name, of: app)
        let other = reference.account(in: accounts)
        if let account {
            _ = absentName.map { try? accounts.account($0, of: app) }
            reference.keep(account)
        } else if let other {
            _ = try? accounts.account(other.name, of: other.app)
        }
        return account
    }
}

/// An existing account for the second lookup by name: the first one that was found, because rows that one
/// caller looks up are of one kind and take equally long to read; before that one of the first rows, since
/// rows are never deleted. It is kept by its number, and read at each use: its name may be erased.
private final class ReferenceAccount: Sendable {
    private let found = Locked<Int64?>(nil)
    /// Tried in order where no account was found yet.
    private static let first: ClosedRange<Int64> = 1...4

    func keep(_ account: Account) {
        guard !account.isErased else { return }
        found.with { if $0 == nil { $0 = account.number } }
    }

    /// Nil while there are no accounts at all; there is then no difference to hide.
    func account(in accounts: any AccountStore) -> Account? {
        if let number = found.with({ $0 }) {
            if let account = try? accounts.account(number), !account.isErased { return account }
            // It was erased, or cannot be read: the next account that is found takes its place.
            found.with { if $0 == number { $0 = nil } }
        }
        for number in ReferenceAccount.first {
            if let account = try? accounts.account(number) { return account }
        }
        return nil
    }
}
