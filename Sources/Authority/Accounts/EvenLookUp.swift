import CountersignGate
import CountersignSeal
import CountersignWire

/// Looks an account up by its name in a time that does not tell whether there is one: each time one look-up finds and one misses. Where
/// the first one finds, the other is for a name that nobody has; where it misses, for one that somebody has.
///
/// Safe to share: what is kept is kept under the lock.
final class EvenLookUp: Sendable {
    private let accounts: any AccountStore
    /// A name that no account has: random.
    private let nobody = try? AccountName(normalizing: "nobody \(Hex.encode(SystemRandom().bytes(16).span))")
    private let somebody = Somebody()

    init(_ accounts: any AccountStore) { self.accounts = accounts }

    func account(_ name: AccountName, of app: AppName) throws(Fault) -> Account? {
        if let account = try accounts.account(name, of: app) {
            _ = try nobody.map { (name) throws(Fault) in try accounts.account(name, of: app) }
            somebody.keep(account)
            return account
        }
        #if SABOTAGE
            if Sabotage.isOn(.unknownAccountTold) { throw Fault(.failed, "there is no account of that name") }
        #endif
        if let (name, app) = try somebody.find(in: accounts) { _ = try accounts.account(name, of: app) }
        return nil
    }
}

/// An account that is there: the first that was asked for, since what is asked for at one place has rows of one kind, and reading them takes
/// alike; before that the first of all, since rows stay.
///
/// Safe to share: `found` is touched under the monitor.
private final class Somebody: @unchecked Sendable {
    private let monitor = Monitor()
    private var found: (name: AccountName, app: AppName)?

    func keep(_ account: Account) {
        monitor.hold { if found == nil { found = (account.name, account.app) } }
    }

    /// Nil while there are no accounts at all, and so nobody to be told from nobody.
    func find(in accounts: any AccountStore) throws(Fault) -> (name: AccountName, app: AppName)? {
        if let found = monitor.hold({ found }) { return found }
        return try accounts.account(1).map { ($0.name, $0.app) }
    }
}
