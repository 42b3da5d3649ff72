import CountersignGate
import CountersignMemory
import CountersignSeal
import CountersignWire

/// Looks up an account by its name in a time that does not depend on whether it exists: each call makes one
/// lookup that finds a row and one that misses. If the first finds the account, the second is for a name
/// that no account has; if it misses, for a name that an account has.
final class ConstantTimeAccountLookup: Sendable {
    private let accounts: any AccountStore
    /// A random name that no account has.
    private let absentName = try? AccountName(
        normalizing: "nobody \(Hex.encode(SystemRandom().bytes(16).span))")
    private let reference = ReferenceAccount()

    init(_ accounts: any AccountStore) { self.accounts = accounts }

    func account(_ name: AccountName, of app: AppName) throws(OperationalError) -> Account? {
        if let account = try accounts.account(name, of: app) {
            _ = try absentName.map { (name) throws(OperationalError) in try accounts.account(name, of: app) }
            reference.keep(account)
            return account
        }
        if let (name, app) = try reference.find(in: accounts) { _ = try accounts.account(name, of: app) }
        return nil
    }
}

/// An existing account for the second lookup: the first one that was found, because rows that one caller
/// looks up are of one kind and take equally long to read; before that the first row, since rows are never
/// deleted.
private final class ReferenceAccount: Sendable {
    private let found = Locked<(name: AccountName, app: AppName)?>(nil)

    func keep(_ account: Account) {
        found.with { if $0 == nil { $0 = (account.name, account.app) } }
    }

    /// Nil while there are no accounts at all; there is then no difference to hide.
    func find(in accounts: any AccountStore) throws(OperationalError) -> (name: AccountName, app: AppName)? {
        if let found = found.with({ $0 }) { return found }
        return try accounts.account(1).map { ($0.name, $0.app) }
    }
}
