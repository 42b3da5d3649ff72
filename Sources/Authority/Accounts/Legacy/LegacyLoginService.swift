import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// The decoded login of a legacy client.
package struct LegacyLoginAttempt: Sendable {
    package let app: LegacyApp
    /// The name that the limits count; a text that is no valid account name is counted under a name derived
    /// from its hash.
    package let counted: AccountName
    let name: AccountName?
    let password: PasswordField
    /// All of these endpoints are tried for every account, so that the work tells nothing about it.
    let endpoints: [Rung.LoginEndpoint]

    /// Never nil in practice: every username gives an attempt.
    package init?(
        _ app: LegacyApp, username: [UInt8], password: PasswordField, at endpoint: Rung.LoginEndpoint
    ) {
        self.init(app, username: username, password: password, atAnyOf: [endpoint])
    }

    /// The same if one path accepts the rungs of several endpoints.
    package init?(
        _ app: LegacyApp, username: [UInt8], password: PasswordField, atAnyOf endpoints: [Rung.LoginEndpoint]
    ) {
        self.app = app
        self.password = password
        self.endpoints = endpoints
        name = try? AccountName(normalizing: username.span)
        let standIn = "no name \(Hex.encode(SHA256.digest(username.span).span))"
        guard let counted = name ?? (try? AccountName(normalizing: standIn)) else { return nil }
        self.counted = counted
    }
}

/// The judge that the login routes of legacy clients call. ``LegacyLoginService`` is the implementation.
package protocol LegacyPasswordLogin: Sendable {
    /// Nil where the login is not accepted. `now` is whole Unix seconds.
    func judge(
        _ attempt: LegacyLoginAttempt, at now: Int64
    ) throws(Refusal) -> LegacyLoginService.Accepted?
    /// The account and its registration, where the password opens its rung; nil where it does not.
    func judge(
        _ password: Secret, of name: AccountName, in app: LegacyApp, at now: Int64
    ) throws(Refusal) -> (account: Account, registration: StoredRegistration)?
    /// The stored, wrapped form of the value that the account's client sends.
    func credential(
        keeping kept: Secret, on rung: Rung, of name: AccountName, in app: AppName
    ) throws(Refusal) -> LegacyCredential
}

/// Judges the logins of legacy clients. Call it on the hashing pool: it reads the store and computes a slow
/// hash.
package struct LegacyLoginService: LegacyPasswordLogin {
    /// An accepted login: the account, its rung, and the use of a minute's value.
    package struct Accepted: Sendable {
        package let account: Account
        package let rung: Rung
        /// To be recorded once, before the login takes effect.
        package let use: MinuteUse?
        /// A registration of the password that was sent, which takes the account off the ladder. Nil if the
        /// app does not allow that, and on rungs that do not reveal the password.
        package let registration: StoredRegistration?
    }

    private let keys: AccountKeys
    private let judge: LegacyLoginVerifier
    private let names: ConstantTimeAccountLookup

    /// `reader` is a connection for reading. Computes one slow hash.
    package init(_ keys: AccountKeys, reader: any AccountStore) throws(OperationalError) {
        self.keys = keys
        names = ConstantTimeAccountLookup(reader)
        do {
            judge = try LegacyLoginVerifier(masterKey: keys.deployment.masterKey, cost: .standard)
        } catch {
            throw OperationalError(.failed, message: "not enough memory for one password hash")
        }
    }

    /// Nil for a refused login: a wrong password, a rung of another endpoint, an account that is locked,
    /// removed or off the ladder, or a name without an account. `now` is in whole Unix seconds.
    package func judge(_ attempt: LegacyLoginAttempt, at now: Int64) throws(Refusal) -> Accepted? {
        let account = try find(attempt)
        var verdict = LegacyLoginVerifier.Verdict.refused
        for endpoint in attempt.endpoints {
            let found = try judge.judge(
                attempt.password, at: endpoint, of: account?.storedLegacy, settings: attempt.app.ladder,
                time: now
            )
            if found != .refused { verdict = found }
        }
        guard verdict != .refused, let account, account.state == .active, let credential = account.legacy
        else { return nil }
        var use: MinuteUse?
        if case .acceptedOnce(let once) = verdict { use = once }
        return Accepted(
            account: account, rung: credential.rung, use: use,
            registration: registration(of: account, by: attempt, on: credential.rung))
    }

    /// The account and a registration, if the plain password opens the account's rung, whichever it is; nil
    /// if the login is refused or the app does not allow upgrades. Computes one slow hash for every name,
    /// and another if the password is right.
    package func judge(
        _ password: Secret, of name: AccountName, in app: LegacyApp, at now: Int64
    ) throws(Refusal) -> (account: Account, registration: StoredRegistration)? {
        guard app.policy.legacyUpgrade == .allowed else { return nil }
        let account = try Login.unavailableOnFault { () throws(OperationalError) in
            try names.account(name, of: app.name)
        }
        guard try opens(password, stored: account?.storedLegacy, settings: app.ladder, at: now), let account,
            account.state == .active
        else { return nil }
        return (try? keys.register(password, of: name, in: app.name)).map { (account, $0) }
    }

    /// Tries both a hashed rung and the minute rung, so that the time does not tell which rung an account
    /// is on, or whether it is on one. The minute's value is computed here and was never sent, so its use
    /// is not recorded.
    private func opens(
        _ password: Secret, stored: LegacyLoginVerifier.StoredCredential?, settings: LadderSettings,
        at now: Int64
    ) throws(Refusal) -> Bool {
        let rung = stored?.credential.rung
        let slowRung = rung.flatMap { $0.endpoint == .minute ? nil : $0 } ?? .md5
        var isOpened = false
        for rung in [slowRung, .hmacMD5Time] {
            // If the app lacks the rung's salt or key, a random value is compared, which never matches.
            let sent = try? LoginLadder.sentValue(
                for: try LoginLadder.storedValue(of: password, on: rung, settings: settings), on: rung,
                settings: settings, at: now)
            let field = (sent ?? Secret(random: 16)).withExposedBytes { PasswordField($0) }
            let verdict = try judge.judge(field, at: rung.endpoint, of: stored, settings: settings, time: now)
            if verdict != .refused { isOpened = true }
        }
        return isOpened
    }

    /// Wraps the value that an account keeps of what its client sends (``PasswordField/storedValue(on:)``).
    /// Computes a slow hash; call it on the hashing pool.
    package func credential(
        keeping kept: Secret, on rung: Rung, of name: AccountName, in app: AppName
    ) throws(Refusal) -> LegacyCredential {
        do {
            return try LegacyCredential(
                keeping: kept, on: rung, of: LegacyAccountID(app: app, name: name),
                under: keys.deployment.masterKey, cost: .standard)
        } catch {
            throw LegacyLoginVerifier.noMemory
        }
    }

    /// Computes OPAQUE's slow hash as a client does. Also nil for a password that OPAQUE does not accept,
    /// such as one that is not UTF-8, and if memory is short: the login is accepted all the same, and the
    /// account stays on the ladder.
    private func registration(of account: Account, by attempt: LegacyLoginAttempt, on rung: Rung)
        -> StoredRegistration?
    {
        guard attempt.app.policy.legacyUpgrade == .allowed, let password = attempt.password.password(on: rung)
        else {
            return nil
        }
        return try? keys.register(password, of: account.name, in: account.app)
    }

    /// A text that is no valid account name is looked up too, under the derived name that the limits count.
    private func find(_ attempt: LegacyLoginAttempt) throws(Refusal) -> Account? {
        do {
            let found = try names.account(attempt.counted, of: attempt.app.name)
            return attempt.name == nil ? nil : found
        } catch {
            throw Refusal(error, in: "legacy login")
        }
    }
}

extension Account {
    /// The account's stored legacy credential; nil for an account that is not on the ladder.
    fileprivate var storedLegacy: LegacyLoginVerifier.StoredCredential? {
        legacy.map {
            LegacyLoginVerifier.StoredCredential(
                account: LegacyAccountID(app: app, name: name), credential: $0)
        }
    }
}
