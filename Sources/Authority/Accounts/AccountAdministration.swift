import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Administration of accounts and their passwords. Each change is durable, and visible to a running server,
/// when its call returns.
extension Deployment {
    /// Adds an account with a password that the administrator knows, or without one; a reset code then sets
    /// the password.
    package func addAccount(
        _ name: AccountName, of app: AppName, password: Secret?, userID: Int64? = nil, at now: Int64
    ) throws(OperationalError) -> Account {
        let policy = try self.app(app).policy()
        if let password { try check(password, by: policy) }
        try Deployment.checkGiven(userID)
        var account = AccountDraft(
            app: app, name: name, userID: userID, created: now,
            tombstones: try tombstones(of: name, userID: userID, in: app))
        try store.verifyNames()
        account.registration = try password.map { (password) throws(OperationalError) in
            try AccountKeys(self).register(password, of: name, in: app)
        }
        let told: [(name: String, value: JSONValue)] = [("password", .bool(password != nil))]
        switch try store.insert(
            account, recording: auditDraft(for: .accountAdd, on: .account(name, of: app), details: told))
        {
        case .yes(let account): return account
        case .taken(.name):
            throw OperationalError(.failed, message: "account \(name): \(app) has, or had, one of that name")
        case .taken(.userID): throw Deployment.taken(userID, for: name)
        }
    }

    private static func taken(_ userID: Int64?, for name: AccountName) -> OperationalError {
        OperationalError(
            .failed,
            message: "account \(name): another account has, or had, the user id \(userID ?? 0)")
    }

    private func check(_ password: Secret, by policy: Policy) throws(OperationalError) {
        guard let reason = try NewPasswordRule(policy, files: policyFiles).rejection(of: password) else {
            return
        }
        throw OperationalError(.failed, message: "the password: \(reason)")
    }

    /// What a new reset code does to the account's other reset codes.
    package enum EarlierResetCodes: Sendable {
        /// They stay valid, and ``CodePace`` limits how often a code is made: a stranger may have asked for
        /// it.
        case kept
        /// They are withdrawn, and ``CodePace`` does not apply.
        case withdrawn
    }

    /// Issues a reset code that replaces the account's password once within `lifetime` seconds. The old
    /// password is valid until the code is used.
    package func resetAccount(
        _ name: AccountName, of app: AppName, lifetime: Int64 = ResetCode.lifetime,
        earlierCodes: EarlierResetCodes = .kept, at now: Int64
    ) throws(OperationalError) -> (code: ResetCode, until: Int64) {
        guard let account = try store.account(name, of: app), account.state != .removed else {
            throw OperationalError(.missing, message: "account \(name): \(app) has none of that name")
        }
        try requireClock(for: "reset code")
        let code = ResetCode()
        let until = now + lifetime
        let draft = auditDraft(
            for: .accountReset, on: .account(name, of: app), details: [("until", .integer(until))])
        let reset = StoredReset(codeHash: code.hash, made: now, until: until)
        let change: AccountChange = earlierCodes == .kept ? .addReset(reset) : .replaceResets(reset)
        switch try store.change(account.number, if: .anything, applying: change, at: now, recording: draft) {
        case .yes: return (code, until)
        case .refused(let refusal):
            throw OperationalError(
                .failed,
                message: "account \(name): \(refusal.text("reset codes")); `countersign account reset "
                    + "--replace` withdraws them and makes one now")
        case .missing, .taken:
            throw OperationalError(.failed, message: "account \(name): it was removed meanwhile")
        }
    }
}

/// Administration of accounts and sessions. Each change is durable, and visible to a running server, when
/// its call returns.
extension Deployment {
    package func account(_ name: AccountName, of app: AppName) throws(OperationalError) -> Account {
        _ = try self.app(app)
        guard let account = try store.account(name, of: app) else {
            throw OperationalError(.missing, message: "account \(name): \(app) has none of that name")
        }
        return account
    }

    /// Adds an account whose clients still send its password by a rung of the ladder. The store keeps the
    /// rung's value wrapped, and never the password. A password that the app's rule refuses is refused here,
    /// too; existing ones, whatever they are, come as hashes by an import. Computes a slow hash.
    package func addLegacyAccount(
        _ name: AccountName, of app: AppName, on rung: Rung, password: Secret, userID: Int64? = nil,
        at now: Int64
    ) throws(OperationalError) -> Account {
        let app = try self.app(app)
        try check(password, by: app.policy())
        try Deployment.checkGiven(userID)
        var draft = AccountDraft(
            app: app.name, name: name, userID: userID, created: now,
            tombstones: try tombstones(of: name, userID: userID, in: app.name))
        try store.verifyNames()
        let settings = try ladder(of: app, policy: try app.policy())
        let kept: Secret
        do {
            kept = try LoginLadder.storedValue(of: password, on: rung, settings: settings)
        } catch {
            throw OperationalError(.failed, message: "account \(name): \(error)")
        }
        do {
            draft.legacy = try LegacyCredential(
                keeping: kept, on: rung, of: LegacyAccountID(app: app.name, name: name), under: masterKey,
                cost: .standard)
        } catch {
            throw OperationalError(.failed, message: "not enough memory for one password hash")
        }
        let told: [(name: String, value: JSONValue)] = [("legacy", .string(rung.rawValue))]
        let audit = auditDraft(for: .accountAdd, on: .account(name, of: app.name), details: told)
        switch try store.insert(draft, recording: audit) {
        case .yes(let account): return account
        case .taken(.name):
            throw OperationalError(
                .failed, message: "account \(name): \(app.name) has, or had, one of that name")
        case .taken(.userID): throw Deployment.taken(userID, for: name)
        }
    }

    /// Refuses all logins of the account until it is unlocked, and ends its sessions.
    package func lockAccount(_ name: AccountName, of app: AppName, at now: Int64) throws(OperationalError)
        -> [SessionID]
    {
        try change(name, of: app, applying: .lock, action: .accountLock, at: now)
    }

    package func unlockAccount(_ name: AccountName, of app: AppName, at now: Int64) throws(OperationalError) {
        _ = try change(name, of: app, applying: .unlock, action: .accountUnlock, at: now)
    }

    /// Removes the account permanently: drops its credentials and ends its sessions. The name stays
    /// reserved, because the backend knows an account by it.
    package func removeAccount(_ name: AccountName, of app: AppName, at now: Int64) throws(OperationalError)
        -> [SessionID]
    {
        try change(name, of: app, applying: .remove, action: .accountRemove, at: now)
    }

    /// A page of the app's accounts with numbers above `number`, in order, removed and altered ones included.
    package func accounts(of app: AppName, after number: Int64, limit: Int) throws(OperationalError)
        -> [ListedRow<Account>]
    {
        _ = try self.app(app)
        return try store.listing(of: app, after: number, limit: limit)
    }

    /// Ends one session of any account, and forgets its device unless `device` says otherwise: a known device
    /// has its own limit on guesses at the password, which the holder of a stolen device must not keep.
    package func revokeSession(
        _ id: SessionID, device: RevokedDevice = .forgotten, at now: Int64
    ) throws(OperationalError) -> SessionRevocation {
        guard let session = try store.session(id) else {
            throw OperationalError(.missing, message: "session \(id): there is none")
        }
        let draft = auditDraft(
            for: .sessionRevoke, on: .session(id, of: session.app),
            details: [("account", .integer(session.account)), ("device_kept", .bool(device == .kept))])
        let outcome = try store.revoke(
            id, of: nil, device: device, with: SessionTermination(.revoked, at: now), recording: draft)
        generation.advance()
        return outcome
    }

    /// Throws if a device of the account's group was deleted or put back: a list with a device that was
    /// forgotten, or without one that is known, would be a wrong answer.
    package func knownDevices(
        of name: AccountName, in app: AppName
    ) throws(OperationalError) -> [KnownDeviceEntry] {
        let number = try account(name, of: app).number
        try store.verifyGroup(ofAccount: number, in: [.knownDevice])
        return try store.knownDevices(of: number)
    }

    /// Forgets a known device; its sessions continue. `prefix` is the beginning of its id in hexadecimal.
    package func forgetDevice(
        _ prefix: String, of name: AccountName, in app: AppName
    ) throws(OperationalError) -> KnownDeviceEntry {
        let account = try account(name, of: app)
        let found = try store.knownDevices(of: account.number).filter { $0.text.hasPrefix(prefix) }
        guard found.count == 1, let entry = found.first else {
            let reason =
                found.isEmpty ? "has no known device of that id" : "has several devices whose ids begin so"
            throw OperationalError(
                found.isEmpty ? .missing : .failed, message: "device \(prefix): account \(name) \(reason)")
        }
        let draft = auditDraft(
            for: .accountForgetDevice, on: .account(name, of: app),
            details: [("device", .string(entry.text))])
        guard try store.forgetDevice(entry.device.id, of: account.number, recording: draft) else {
            throw OperationalError(.failed, message: "device \(prefix): it was forgotten meanwhile")
        }
        return entry
    }

    /// Sets the user id that the backend gave, or clears it; nothing happens if it is set already. Ends the
    /// account's sessions. The former id stays reserved for this account.
    package func setUserID(
        _ userID: Int64?, of name: AccountName, in app: AppName, at now: Int64
    ) throws(OperationalError) -> [SessionID] {
        try Deployment.checkGiven(userID)
        let account = try account(name, of: app)
        guard account.userID != userID else { return [] }
        if userID != nil { try store.verifyNames() }
        let told: [(name: String, value: JSONValue)] = [
            ("user_id", userID == nil ? "cleared" : "set")
        ]
        let tombstones = try tombstoneKey().tombstones(
            ofID: account.userID, to: userID, of: account.number, in: app)
        return try change(
            name, of: app, applying: .setUserID(userID, reserving: tombstones), action: .accountUserID,
            details: told, at: now)
    }

    private func change(
        _ name: AccountName, of app: AppName, applying change: AccountChange, action: AuditAction,
        details: [(name: String, value: JSONValue)] = [], at now: Int64
    ) throws(OperationalError) -> [SessionID] {
        let account = try account(name, of: app)
        guard account.state != .removed else {
            throw OperationalError(.failed, message: "account \(name): was removed; that is for good")
        }
        let draft = auditDraft(for: action, on: .account(name, of: app), details: details)
        switch try store.change(account.number, if: .anything, applying: change, at: now, recording: draft) {
        case .yes(let ended):
            generation.advance()
            return ended
        case .missing, .refused:
            throw OperationalError(
                .failed, message: "account \(name): was removed or changed meanwhile")
        case .taken:
            throw OperationalError(
                .failed, message: "account \(name): another account has, or had, this user id")
        }
    }

    /// Refuses the user ids that legacy clients of accounts without one receive: a client of such an account
    /// would state the user id of another.
    static func checkGiven(_ userID: Int64?) throws(OperationalError) {
        guard let userID, AccountIdentity.clientNumbers.contains(userID) else { return }
        throw OperationalError(
            .failed,
            message: "user id \(userID): \(AccountIdentity.clientNumbers.lowerBound) to "
                + "\(AccountIdentity.clientNumbers.upperBound) are kept for accounts without a user id"
        )
    }
}

extension KnownDeviceEntry {
    /// The device's id as people read and type it: hexadecimal, or the beginning of it.
    package var text: String { Hex.encode(device.id.span) }
}
