import CountersignGate
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
    /// Each is tried, whatever the account: what is computed tells nothing about it.
    let doors: [Rung.Door]

    /// Nil for nobody: every text gives an attempt.
    package init?(_ app: LegacyApp, username: [UInt8], password: PasswordField, at door: Rung.Door) {
        self.init(app, username: username, password: password, atAnyOf: [door])
    }

    /// The same where one path takes the rungs of several doors.
    package init?(_ app: LegacyApp, username: [UInt8], password: PasswordField, atAnyOf doors: [Rung.Door]) {
        self.app = app
        self.password = password
        self.doors = doors
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
        /// Of the password that was sent: what takes the account off the ladder. Nil where its app does not want that, and on
        /// rungs that do not tell the password.
        package let registration: StoredRegistration?
    }

    private let keys: AccountKeys
    private let judge: LegacyLogin
    private let names: EvenLookUp

    /// `reader` is a connection for reading. Computes one slow hash.
    package init(_ keys: AccountKeys, reader: any AccountStore) throws(Fault) {
        self.keys = keys
        names = EvenLookUp(reader)
        do throws(PasswordHash.OutOfMemory) {
            judge = try LegacyLogin(masterKey: keys.deployment.masterKey, cost: .standard)
        } catch {
            throw Fault(.failed, "not enough memory for one password hash")
        }
    }

    /// Nil for whoever is not let in: a wrong password, another door's rung, an account that is locked, gone, or off the ladder, and
    /// a name without an account. `now` is whole Unix seconds.
    package func judge(_ attempt: LegacyAttempt, at now: Int64) throws(Refusal) -> Accepted? {
        try LegacySignIn.refusing { () throws(LegacyLoginFault) in try accepted(attempt, at: now) }
    }

    private static func refusing<Verdict>(
        _ judge: () throws(LegacyLoginFault) -> Verdict
    ) throws(Refusal) -> Verdict {
        do throws(LegacyLoginFault) {
            return try judge()
        } catch {
            switch error {
            case .outOfMemory: throw Refusal(.unavailable, "no memory for a password hash", retryAfter: 1)
            case .fault(let fault): throw Refusal(.unavailable, "legacy login: \(fault.message)", retryAfter: 5)
            }
        }
    }

    private func accepted(_ attempt: LegacyAttempt, at now: Int64) throws(LegacyLoginFault) -> Accepted? {
        let account = try find(attempt)
        #if SABOTAGE
            if Sabotage.isOn(.unknownAccountFast), account == nil { return nil }
        #endif
        var verdict = LegacyLogin.Verdict.refused
        for door in attempt.doors {
            let found = try judge.judge(
                attempt.password, at: door, of: account?.storedLegacy, attempt.app.ladder, at: now)
            if found != .refused { verdict = found }
        }
        guard verdict != .refused, let account, account.state == .active, let credential = account.legacy,
            account.userID != nil
        else { return nil }
        var use: MinuteUse?
        if case .acceptedOnce(let once) = verdict { use = once }
        return Accepted(
            account: account, rung: credential.rung, use: use,
            registration: registration(of: account, by: attempt, on: credential.rung))
    }

    /// The account and its registration, where the password itself was sent and opens its rung, whichever that is; nil for whoever
    /// is not let in, and where the app does not want its accounts moved. Computes one slow hash for every name, and another
    /// where the password is right.
    package func judge(
        _ password: Secret, of name: AccountName, in app: LegacyApp, at now: Int64
    ) throws(Refusal) -> (account: Account, registration: StoredRegistration)? {
        guard app.policy.legacyUpgrade == .allowed else { return nil }
        let account = try Login.reading { () throws(Fault) in try names.account(name, of: app.name) }
        guard
            try LegacySignIn.refusing({ () throws(LegacyLoginFault) in
                try opens(password, account?.storedLegacy, app.ladder, at: now)
            }), let account, account.state == .active
        else { return nil }
        return (try? keys.register(password, of: name, in: app.name)).map { (account, $0) }
    }

    /// The doors of digests and of the minute are both tried, so that the time does not tell which rung an account is on, or that it
    /// is on one. A minute's value that never travelled need not be spent.
    private func opens(
        _ password: Secret, _ stored: LegacyLogin.Stored?, _ settings: LadderSettings, at now: Int64
    ) throws(LegacyLoginFault) -> Bool {
        let rung = stored?.credential.rung
        let slowRung = rung.flatMap { $0.door == .minute ? nil : $0 } ?? .md5
        var isOpened = false
        for rung in [slowRung, .hmacMD5Time] {
            // Where the app lacks the rung's salt or key nothing opens it.
            let sent = try? LoginLadder.sent(
                try LoginLadder.kept(password, on: rung, settings), on: rung, settings, at: now)
            let field = (sent ?? Secret(random: 16)).withExposedBytes { PasswordField($0) }
            let verdict = try judge.judge(field, at: rung.door, of: stored, settings, at: now)
            if verdict != .refused { isOpened = true }
        }
        return isOpened
    }

    /// What an account keeps of the value that its client sends (``PasswordField/kept(on:)``), wrapped.
    /// Computes a slow hash: for the hashing pool.
    package func credential(
        keeping kept: Secret, on rung: Rung, of name: AccountName, in app: AppName
    ) throws(Refusal) -> LegacyCredential {
        do throws(PasswordHash.OutOfMemory) {
            return try LegacyCredential(
                keeping: kept, on: rung, of: LegacyAccountID(app: app, name: name),
                under: keys.deployment.masterKey, cost: .standard)
        } catch {
            throw Refusal(.unavailable, "no memory for a password hash", retryAfter: 1)
        }
    }

    /// Computes OPAQUE's slow hash as its client does. Nil, too, for a password that OPAQUE does not take, such as one that is not
    /// UTF-8, and where memory is short: its login is good all the same, and the account stays where it is.
    private func registration(of account: Account, by attempt: LegacyAttempt, on rung: Rung) -> StoredRegistration? {
        guard attempt.app.policy.legacyUpgrade == .allowed, let password = attempt.password.password(on: rung) else {
            return nil
        }
        return try? keys.register(password, of: account.name, in: account.app)
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

extension Account {
    /// What its rung is judged by; nil for an account that is on none.
    fileprivate var storedLegacy: LegacyLogin.Stored? {
        legacy.map { LegacyLogin.Stored(LegacyAccountID(app: app, name: name), $0) }
    }
}
