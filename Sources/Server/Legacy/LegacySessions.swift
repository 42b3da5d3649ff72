import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignHandshake
import CountersignSchemes
import CountersignWire

/// How legacy clients sign in, renew a session, and sign out.
extension LegacyRoutes {
    func logIn(
        to app: LegacyApp, atAnyOf endpoints: [Rung.LoginEndpoint], for call: RouteCall
    ) async throws(Refusal) -> LegacyAnswer {
        let form = try LegacyForm(of: call.request)
        let username = try form.value(app.policy.parameter(.account))
        let password = try form.password(app.policy.parameter(.password))
        let attempt = LegacyLoginAttempt(app, username: username, password: password, atAnyOf: endpoints)
        guard let attempt else { return .noUser(Login.wrongCredentials, of: app) }
        let receipt = try await services.debit(call, account: attempt.counted, of: app.name)
        guard let accepted = try await judged(attempt, debited: receipt, at: call.now),
            let user = AccountIdentity(accepted.account).clientNumber
        else { return .noUser(Login.wrongCredentials, of: app) }
        await services.refund(receipt, of: attempt.counted, in: app.name, at: call.now)
        let account = await upgraded(accepted, at: call.now)
        return try await signedIn(account, as: user, in: app, for: call)
    }

    /// The account, moved off the ladder if its app wants that and the password is now known. A login does
    /// not fail because the account could not be moved: the next login tries again.
    private func upgraded(_ accepted: LegacyLoginService.Accepted, at now: Int64) async -> Account {
        guard let registration = accepted.registration else { return accepted.account }
        do {
            let upgraded = try await services.enrolment.upgrade(accepted.account, to: registration, at: now)
            return upgraded ?? accepted.account
        } catch {
            return accepted.account
        }
    }

    /// The account whose password it is; nil if the password matches no account, or if its one-time value was
    /// used before.
    func judged(
        _ attempt: LegacyLoginAttempt, debited receipt: LoginLimits.Receipt, at now: Int64
    ) async throws(Refusal) -> LegacyLoginService.Accepted? {
        let accepted: LegacyLoginService.Accepted?
        do {
            accepted = try await services.passwords.attempt { () throws(Refusal) in
                try self.services.legacyLogins.signIn.judge(attempt, at: now)
            }
        } catch {
            // Without a verdict the guess does not count.
            await services.refund(receipt, of: attempt.counted, in: attempt.app.name, at: now)
            throw error
        }
        guard let accepted, try await spend(accepted.use, at: now) else { return nil }
        return accepted
    }

    /// Opens a session if the authority issues the app's tokens. Answers without a session if the account was
    /// locked, or left the ladder, a moment ago.
    func signedIn(
        _ account: Account, as user: Int64, in app: LegacyApp, for call: RouteCall
    ) async throws(Refusal) -> LegacyAnswer {
        guard app.policy.legacySession == .authority else { return .user(user, of: app) }
        let login = try login(account, in: app, for: call)
        let grant = try await services.bearers.open(login, policy: app.policy, at: call.now)
        guard let grant else { return .noUser(LegacyRoutes.changed, of: app) }
        return .done([
            (app.policy.parameter(.user), .integer(user)),
            (app.policy.parameter(.token), .string(grant.token.text)),
            (app.policy.parameter(.loginToken), .string(grant.loginToken.text)),
            ("expiresIn", .integer(grant.expires - call.now)),
        ])
    }

    /// Whether the minute's value is used for the first time; true for rungs with constant values.
    private func spend(_ use: MinuteUse?, at now: Int64) async throws(Refusal) -> Bool {
        guard let use else { return true }
        do {
            guard let entry = ReplayEntry(spending: use, at: now) else { return false }
            try await services.replay.insert(entry)
            return true
        } catch {
            guard error.code == .replayed else { throw error }
            return false
        }
    }

    private func login(
        _ account: Account, in app: LegacyApp, for call: RouteCall
    ) throws(Refusal) -> BearerLogin {
        let release = call.statedRelease
        guard let platform = Platform(release?.platform ?? HostedApp.unknown) else {
            throw Refusal(.unavailable, detail: "a release without a platform")
        }
        var login = BearerLogin(
            account: account.number, app: app.name, release: release?.id, platform: platform,
            deviceClass: .other,
            deviceName: release.map { "\($0.platform) \($0.version)" } ?? "unsigned login",
            credential: account.registration?.credential ?? account.legacy?.sealed, renewing: .keeping)
        // The session's token may then be sent without a signature.
        if call.unsigned != nil { login.opening = .unsigned }
        return login
    }

    /// The login token stays the same: clients in the field keep the one that they received first.
    func renew(in app: LegacyApp, for call: RouteCall) async throws(Refusal) -> LegacyAnswer {
        let text = try LegacyForm(of: call.request).value(app.policy.parameter(.loginToken))
        guard let loginToken = LoginToken(text.span) else {
            throw Refusal(.sessionEnded, detail: "loginToken: not one of ours")
        }
        let grant = try await services.bearers.renew(
            loginToken, of: app.name, by: call.statedRelease?.id, policy: app.policy,
            loginTokenRule: .keeping, at: call.now)
        return .done([
            (app.policy.parameter(.token), .string(grant.token.text)),
            ("expiresIn", .integer(grant.expires - call.now)),
        ])
    }

    /// Ends the session of the token, of the login token, or of both. Answers `{"result":1}` whether or not
    /// there was a session, so a second call is answered as the first.
    func logOut(of app: LegacyApp, for call: RouteCall) async throws(Refusal) -> LegacyAnswer {
        let form = try LegacyForm(of: call.request, in: .queryWithoutBody)
        let token = try token(in: form, of: app, sentWith: call.request)
        let loginToken = try form.token(ifAny: app.policy.parameter(.loginToken))
        guard token != nil || loginToken != nil else {
            throw Refusal(
                .malformed, detail: "logout: expected a token, in a parameter or as Authorization: Bearer")
        }
        try await services.bearers.signOut(token: token, loginToken: loginToken, of: app.name, at: call.now)
        return .done([("result", 1)])
    }

    /// The session's token, from the parameters or from the Authorization field. If it is in both, the two
    /// must be equal.
    func token(
        in form: LegacyForm, of app: LegacyApp, sentWith request: Request
    ) throws(Refusal) -> [UInt8]? {
        let parameter = try form.token(ifAny: app.policy.parameter(.token))
        guard request.names.contains(.authorization) else { return parameter }
        guard let slice = request.value(of: .authorization) else {
            throw Refusal(.malformed, detail: "authorization: expected one")
        }
        let value = request.head.span.extracting(slice.range)
        guard value.count > 7, value.extracting(0..<7).matchesWithoutCase("bearer ") else { return parameter }
        var start = 7
        while start < value.count, value[start] == UInt8(ascii: " ") { start += 1 }
        let token = Array(request.head[(slice.range.lowerBound + start)..<slice.range.upperBound])
        guard parameter == nil || parameter == token else {
            throw Refusal(.malformed, detail: "two tokens that differ")
        }
        return token
    }
}

extension RouteCall {
    /// The release that signed the call, or that the unsigned call claims; nil for a version that no
    /// administrator has added.
    fileprivate var statedRelease: AppRelease? {
        caller?.release ?? unsigned.flatMap { $0.isUnregisteredVersion ? nil : $0 }
    }
}
