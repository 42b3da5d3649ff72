import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// How legacy clients make accounts and change their passwords: the store keeps what the rung prescribes,
/// wrapped before it is written. Source: docs/protocol.md, "The login ladder"; decision 0040.
extension LegacyRoutes {
    /// `{"userId":N}`, with tokens as at a login; N is 0 for a name that is taken, or that is not a valid
    /// account name.
    func signUp(
        to app: LegacyApp, at endpoint: Rung.LoginEndpoint, for call: RouteCall
    ) async throws(Refusal) -> LegacyAnswer {
        guard app.policy.registration == .open else {
            throw Refusal(
                .forbidden, detail: "policy registration=admin: accounts are made by administrators")
        }
        let form = try LegacyForm(of: call.request)
        let username = try form.value(app.policy.parameter(.account))
        let sent = try form.password(app.policy.parameter(.password))
        let rung = app.policy.legacyRung ?? (endpoint == .query ? .plainGet : .plainPost)
        guard let kept = sent.storedValue(on: rung) else {
            throw LegacyRoutes.noValue(of: rung, in: app.policy.parameter(.password))
        }
        // Debit before the look-up: this limits how many accounts an address makes, and how many names it can
        // test.
        try await services.debitRegistration(call)
        try await checkNew(sent, on: rung, in: app.policy.parameter(.password), of: app)
        guard let name = LegacyRoutes.accountName(username) else {
            return .noUser(Refusal(.malformed, detail: "not a valid account name"), of: app)
        }
        // The slow hash comes before the store is asked, so that a taken name takes as long as a free one.
        let credential = try await wrapped(kept, on: rung, of: name, in: app)
        let made = try await services.enrolment.signUp(credential, name: name, in: app.name, at: call.now)
        guard let account = made, let user = AccountIdentity(account).clientNumber else {
            return .noUser(Refusal(.nameTaken), of: app)
        }
        return try await signedIn(account, as: user, in: app, for: call)
    }

    /// `{"userId":N}`; 0 for a wrong old password, and in all other cases in which a login is answered 0.
    /// Called with the user name, or under a session. That session stays; all others end.
    func changePassword(
        in app: LegacyApp, atAnyOf endpoints: [Rung.LoginEndpoint], for call: RouteCall
    ) async throws(Refusal) -> LegacyAnswer {
        let form = try LegacyForm(of: call.request)
        let old = try form.password(app.policy.parameter(.password))
        let new = try form.password(app.policy.parameter(.newPassword))
        let session = try await session(in: form, of: app, for: call)
        guard let username = try await username(in: form, of: app, under: session) else {
            return .noUser(Login.wrongCredentials, of: app)
        }
        guard let attempt = LegacyLoginAttempt(app, username: username, password: old, atAnyOf: endpoints)
        else {
            return .noUser(Login.wrongCredentials, of: app)
        }
        // A session's guesses have a limit of their own: unknown devices that use up the account's limit do
        // not keep the session from changing its password.
        let guesser = session.map { LoginLimits.Caller.knownDevice($0.id.bytes) } ?? .stranger(call.address)
        let receipt = try await services.debit(guesser, account: attempt.counted, of: app.name, at: call.now)
        guard let accepted = try await judged(attempt, debited: receipt, at: call.now),
            let user = AccountIdentity(accepted.account).clientNumber
        else { return .noUser(Login.wrongCredentials, of: app) }
        await services.refund(receipt, of: attempt.counted, in: app.name, at: call.now)
        let account = accepted.account
        guard session == nil || session?.account.number == account.number else {
            return .noUser(Login.wrongCredentials, of: app)
        }
        guard accepted.rung.endpoint != .minute else {
            throw Refusal(.forbidden, detail: "hmac-md5-time: its clients send no value that could be kept")
        }
        guard let kept = new.storedValue(on: accepted.rung) else {
            throw LegacyRoutes.noValue(of: accepted.rung, in: app.policy.parameter(.newPassword))
        }
        try await checkNew(new, on: accepted.rung, in: app.policy.parameter(.newPassword), of: app)
        let credential = try await wrapped(kept, on: accepted.rung, of: account.name, in: app)
        let isChanged = try await services.enrolment.change(
            credential, of: account, keeping: session?.id, at: call.now)
        return isChanged ? .user(user, of: app) : .noUser(LegacyRoutes.changed, of: app)
    }

    /// Refuses a new password that comes in clear and breaks the app's rule. What comes hashed is not
    /// readable, and passes.
    private func checkNew(
        _ sent: PasswordField, on rung: Rung, in parameter: String, of app: LegacyApp
    ) async throws(Refusal) {
        guard let password = sent.password(on: rung) else { return }
        let rule = NewPasswordRule(app.policy, files: services.policyFiles)
        let rejection = try await services.steps.attempt { () throws(Refusal) in
            do throws(OperationalError) {
                return try rule.rejection(of: password)
            } catch {
                throw Refusal(error, in: "passwords")
            }
        }
        if let rejection { throw Refusal(.malformed, detail: "parameter \(parameter): \(rejection)") }
    }

    /// Computed in the password pool, whose queue is bounded.
    private func wrapped(
        _ kept: Secret, on rung: Rung, of name: AccountName, in app: LegacyApp
    ) async throws(Refusal) -> LegacyCredential {
        let app = app.name
        return try await services.passwords.attempt { () throws(Refusal) in
            try self.services.legacyLogins.signIn.credential(keeping: kept, on: rung, of: name, in: app)
        }
    }

    /// The live session of the token in the request; nil if there is no token, or if the backend issues the
    /// tokens.
    private func session(
        in form: LegacyForm, of app: LegacyApp, for call: RouteCall
    ) async throws(Refusal) -> Session? {
        guard app.policy.legacySession == .authority,
            let token = try token(in: form, of: app, sentWith: call.request)
        else {
            return nil
        }
        guard let session = try await services.bearers.session(bearing: token, of: app.name) else {
            throw Refusal(.sessionEnded, detail: "no session has this token")
        }
        if let end = session.end { throw Refusal(end, of: session.id) }
        guard session.idleEnd > call.now else {
            throw Refusal(ofExpired: session.id, at: session.idleEnd)
        }
        guard session.expires > call.now else {
            let isRenewed = app.policy.legacyRenewal == .allowed
            throw Refusal(
                isRenewed ? .tokenExpired : .sessionEnded, detail: "session \(session.id): the token expired",
                decidedAt: isRenewed ? nil : session.expires)
        }
        return session
    }

    /// The account whose password is to change. Nil if a session's caller names another account than the
    /// session's: its guesses count to the session, so they must not test another account's password.
    private func username(
        in form: LegacyForm, of app: LegacyApp, under session: Session?
    ) async throws(Refusal) -> [UInt8]? {
        let parameter = app.policy.parameter(.account)
        guard let session else { return try form.value(parameter) }
        guard let account = try await services.sessions.life.readAccount(session.account.number) else {
            throw Refusal(.unavailable, detail: "session \(session.id): its account is not in the store")
        }
        if let stated = try form.value(ifAny: parameter) {
            guard LegacyRoutes.accountName(stated) == account.name else { return nil }
        }
        return account.name.bytes
    }

    /// Nil for a text that is not a valid account name.
    private static func accountName(_ text: [UInt8]) -> AccountName? {
        try? AccountName(normalizing: text.span)
    }

    /// The account was locked, removed or given another credential during the call.
    static let changed = Refusal(.wrongCredentials, detail: "the account changed during the call")

    private static func noValue(of rung: Rung, in parameter: String) -> Refusal {
        Refusal(.malformed, detail: "parameter \(parameter): no value that clients of \(rung.rawValue) send")
    }
}
