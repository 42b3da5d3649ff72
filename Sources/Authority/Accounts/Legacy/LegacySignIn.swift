import CountersignSchemes
import CountersignSeal
import CountersignWire

/// What an old client sends to sign in, decoded.
package struct LegacyAttempt: Sendable {
    package let app: LegacyApp
    /// As the limits count it: a name that no account can have counts as one of its own.
    package let counted: AccountName
    let name: AccountName?
    let password: PasswordField
    let door: Rung.Door

    /// Nil for nobody: every text gives an attempt.
    package init?(_ app: LegacyApp, username: [UInt8], password: PasswordField, at door: Rung.Door) {
        self.app = app
        self.password = password
        self.door = door
        name = try? AccountName(normalizing: username.span)
        let standIn = "no name \(Hex.encode(SHA256.digest(username.span).span))"
        guard let counted = name ?? (try? AccountName(normalizing: standIn)) else { return nil }
        self.counted = counted
    }
}

/// Judges the logins of old clients: for the hashing pool, since it reads a store and computes a slow hash.
package struct LegacySignIn: Sendable {
    /// Who signed in, by which use of which rung.
    package struct Accepted: Sendable {
        package let account: Account
        package let rung: Rung
        /// To be spent, once, before anything comes of the login.
        package let use: MinuteUse?
    }

    private let judge: LegacyLogin
    private let names: EvenLookUp

    /// `reader` is a connection for reading. Computes one slow hash.
    package init(_ deployment: Deployment, reader: any AccountStore) throws(Fault) {
        names = EvenLookUp(reader)
        do throws(PasswordHash.OutOfMemory) {
            judge = try LegacyLogin(masterKey: deployment.masterKey, cost: .standard)
        } catch {
            throw Fault(.failed, "not enough memory for one password hash")
        }
    }

    /// Nil for whoever is not let in: a wrong password, another door's rung, an account that is locked, gone, or off the ladder, and
    /// a name without an account. `now` is whole Unix seconds.
    package func judge(_ attempt: LegacyAttempt, at now: Int64) throws(Refusal) -> Accepted? {
        do throws(LegacyLoginFault) {
            return try accepted(attempt, at: now)
        } catch {
            switch error {
            case .outOfMemory: throw Refusal(.unavailable, "no memory for a password hash", retryAfter: 1)
            case .fault(let fault): throw Refusal(.unavailable, "legacy login: \(fault.message)", retryAfter: 5)
            }
        }
    }

    private func accepted(_ attempt: LegacyAttempt, at now: Int64) throws(LegacyLoginFault) -> Accepted? {
        let account = try find(attempt)
        #if DEBUG
            if PlantedFault.earlyReturn, account == nil { return nil }
        #endif
        var stored: LegacyLogin.Stored?
        if let account, let credential = account.legacy {
            stored = LegacyLogin.Stored(LegacyAccountID(app: account.app, name: account.name), credential)
        }
        let verdict = try judge.judge(attempt.password, at: attempt.door, of: stored, attempt.app.ladder, at: now)
        guard verdict != .refused, let account, account.state == .active, let credential = account.legacy,
            account.userID != nil
        else { return nil }
        guard case .acceptedOnce(let use) = verdict else {
            return Accepted(account: account, rung: credential.rung, use: nil)
        }
        return Accepted(account: account, rung: credential.rung, use: use)
    }

    /// A name that no account can have is looked up as well, under the one that stands in for it.
    private func find(_ attempt: LegacyAttempt) throws(LegacyLoginFault) -> Account? {
        do throws(Fault) {
            let found = try names.account(attempt.counted, of: attempt.app.name)
            return attempt.name == nil ? nil : found
        } catch {
            throw .fault(error)
        }
    }
}
