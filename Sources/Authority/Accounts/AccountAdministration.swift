import CountersignSeal
import CountersignWire

/// What administrators do to accounts that concerns passwords. Each is durable, and seen by a running server, once it returns.
extension Deployment {
    /// With a password that whoever runs the command has seen, or without one: then it is set with a reset code.
    package func addAccount(
        _ name: AccountName, of app: AppName, password: Secret?, userID: Int64? = nil, at now: Int64
    ) throws(Fault) -> Account {
        _ = try self.app(app)
        var account = AccountDraft(app: app, name: name, userID: userID, created: now)
        account.registration = try password.map { (password) throws(Fault) in
            try AccountKeys(self).register(password, of: name, in: app)
        }
        let told: [(name: String, value: JSONValue)] = [("password", .bool(password != nil))]
        switch try store.insert(account, recording: recording(.accountAdd, .account(name, of: app), told)) {
        case .yes(let account): return account
        case .taken(.name): throw Fault(.failed, "account \(name): \(app) has, or had, one of that name")
        case .taken(.userID): throw Fault(.failed, "account \(name): another has the user id \(userID ?? 0)")
        }
    }

    /// A code with which the account's password is set anew, once, within `lifetime` seconds; in the place of an earlier one.
    /// Until it is used the password that stands goes on standing.
    package func resetAccount(
        _ name: AccountName, of app: AppName, lifetime: Int64 = ResetCode.lifetime, at now: Int64
    ) throws(Fault) -> (code: ResetCode, until: Int64) {
        guard let account = try store.account(name, of: app), account.state != .removed else {
            throw Fault(.failed, "account \(name): \(app) has none of that name")
        }
        let code = ResetCode()
        let until = now + lifetime
        let draft = recording(.accountReset, .account(name, of: app), [("until", .integer(until))])
        let change = AccountChange.setReset(StoredReset(codeHash: code.hash, until: until))
        guard case .yes = try store.change(account.number, if: .anything, change, at: now, recording: draft) else {
            throw Fault(.failed, "account \(name): it was removed meanwhile")
        }
        return (code, until)
    }
}
