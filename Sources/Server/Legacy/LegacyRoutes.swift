import CountersignAuthority
import CountersignGate
import CountersignHandshake
import CountersignHTTP
import CountersignSchemes
import CountersignWire

/// The routes that old clients sign in at, outside the prefix. They are there where an app's policy says so; else these paths
/// are the backend's like any other. Source: docs/protocol.md, "The login ladder".
final class LegacyRoutes: Sendable {
    let services: AccountServices

    init(services: AccountServices) { self.services = services }

    /// What is called, and whose call it is.
    struct Found: Sendable {
        let path: LegacyPath
        let app: LegacyApp
        /// To be judged by the gate. One that is not signed is judged by what it carries alone.
        let isSigned: Bool
    }

    /// A login is a few parameters, and comes from anybody.
    static let mostBodyBytes = 64 << 10

    /// Whether the request may be for one of these: then its body, if it is small, is read before anything is
    /// judged. Most are told by their path, and where no app has these routes, none is.
    func mayBeCalled(by request: Request) throws(Refusal) -> Bool {
        guard LegacyPath.reading(of: request) != nil else { return false }
        do throws(Fault) {
            return try services.ladder.apps.areAny
        } catch {
            throw Refusal(.unavailable, "legacy login: \(error.message)", retryAfter: 5)
        }
    }

    /// The route that the request calls, given the judgement of its caller. Nil where the call is the
    /// backend's: another path, an app without these routes, or no app at all. Refuses a call that is not one
    /// of ours and could reach the backend's own login, where guesses are neither judged nor counted.
    func find(_ request: Request, _ judgement: Judgement) throws(Refusal) -> Found? {
        guard let reading = LegacyPath.reading(of: request) else { return nil }
        let isSigned = judgement.isSigned
        // Says whose call it would be; that the signature holds is the gate's to find, later.
        let app = try app(of: request, isSigned ? judgement.release : nil, isSigned: isSigned)
        guard let app, !reading.isOfTokens || app.policy.legacySession == .authority else { return nil }
        guard case .called(let path) = reading else {
            throw Refusal(.malformed, "where old clients sign in: expected the path as documented, and its method")
        }
        guard request.isBodyWhole else { throw Refusal(.tooLarge, "where old clients sign in: the body is too large") }
        return Found(path: path, app: app, isSigned: isSigned)
    }

    private func app(
        of request: Request, _ release: ReleaseKey?, isSigned: Bool
    ) throws(Refusal) -> LegacyApp? {
        do throws(Fault) {
            guard isSigned else {
                return try services.ladder.apps.app(at: request.head.span.extracting(request.authority.range))
            }
            guard let release else { return nil }
            return try services.ladder.apps.app(named: release.app)
        } catch {
            throw Refusal(.unavailable, "legacy login: \(error.message)", retryAfter: 5)
        }
    }

    /// The release that an unsigned call comes from by what it says, where its app takes tokens alone at this
    /// host; nil for all others.
    func release(of request: Request, to app: LegacyApp) throws(Refusal) -> ReleaseKey? {
        let hosted: HostedApp?
        do throws(Fault) {
            hosted = try services.keys.app(at: request.head.span.extracting(request.authority.range))
        } catch {
            throw Refusal(.unavailable, "keys: \(error.message)", retryAfter: 5)
        }
        // Where another rule than the host found the app, no call could bear its token.
        guard let hosted, hosted.name == app.name.description else { return nil }
        return try hosted.release(signingInBy: request)
    }

    /// `call.caller` is nil where the call is not signed; then `unsigned` is what ``release(of:to:)`` found.
    func answer(
        _ found: Found, _ call: RouteCall, from unsigned: ReleaseKey?
    ) async throws(Refusal) -> Answer {
        switch found.path {
        case .login(let door): try await logIn(found.app, at: door, unsigned, call)
        case .token: try await renew(found.app, unsigned, call)
        }
    }
}

extension LegacyRoutes {
    /// `{"userId":N}`; N is 0 for whoever is not let in, whatever the reason.
    private func logIn(
        _ app: LegacyApp, at door: Rung.Door, _ unsigned: ReleaseKey?, _ call: RouteCall
    ) async throws(Refusal) -> Answer {
        let form = try LegacyForm(of: call.request)
        let (username, password) = (try form.value("username"), try form.value("password"))
        let attempt = LegacyAttempt(app, username: username, password: PasswordField(password.span), at: door)
        guard let attempt else { return LegacyRoutes.refused }
        let receipt = try services.debit(call, attempt.counted, of: app.name)
        guard let accepted = try await judged(attempt, receipt, at: call.now), let userID = accepted.account.userID
        else { return LegacyRoutes.refused }
        services.refund(receipt, at: call.now)
        let account = await upgraded(accepted, at: call.now)
        guard app.policy.legacySession == .authority else { return .legacy([("userId", .integer(userID))]) }
        return try await signedIn(account, userID, app, unsigned, call)
    }

    /// The account, off the ladder where its app wants that and its password is known now. A login does not fail because the
    /// account could not be moved: the next one tries again.
    private func upgraded(_ accepted: LegacySignIn.Accepted, at now: Int64) async -> Account {
        guard let registration = accepted.registration else { return accepted.account }
        do throws(Refusal) {
            let upgraded = try await services.enrolment.upgrade(accepted.account, to: registration, at: now)
            return upgraded ?? accepted.account
        } catch {
            return accepted.account
        }
    }

    /// Whose password it is; nil for nobody's, and where the value was used before.
    private func judged(
        _ attempt: LegacyAttempt, _ receipt: LoginLimits.Receipt, at now: Int64
    ) async throws(Refusal) -> LegacySignIn.Accepted? {
        let accepted: LegacySignIn.Accepted?
        do throws(Refusal) {
            accepted = try await services.passwords.attempt { () throws(Refusal) in
                try self.services.ladder.signIn.judge(attempt, at: now)
            }
        } catch {
            // No answer, no guess.
            services.refund(receipt, at: now)
            throw error
        }
        guard let accepted, try await spend(accepted.use, at: now) else { return nil }
        return accepted
    }

    /// With a session of ours. None where the account was locked, or left the ladder, a moment ago.
    private func signedIn(
        _ account: Account, _ userID: Int64, _ app: LegacyApp, _ unsigned: ReleaseKey?, _ call: RouteCall
    ) async throws(Refusal) -> Answer {
        let login = try login(account, app, unsigned, call)
        let grant = try await services.bearers.open(login, app.policy, at: call.now)
        guard let grant else { return LegacyRoutes.refused }
        return .legacy([
            ("userId", .integer(userID)), ("token", .string(grant.token.text)),
            ("loginToken", .string(grant.loginToken.text)), ("expiresIn", .integer(grant.expires - call.now)),
        ])
    }

    private static let refused = Answer.legacy([("userId", 0)])

    /// Whether the minute's value is used for the first time; true for rungs whose values are always the same.
    private func spend(_ use: MinuteUse?, at now: Int64) async throws(Refusal) -> Bool {
        guard let use else { return true }
        do throws(Refusal) {
            guard let entry = ReplayEntry(spending: use, at: now) else { return false }
            try await services.replay.insert(entry)
            return true
        } catch {
            guard error.code == .replayed else { throw error }
            return false
        }
    }

    /// `unsigned` is what ``release(of:to:)`` found: the session's token may then come alone.
    private func login(
        _ account: Account, _ app: LegacyApp, _ unsigned: ReleaseKey?, _ call: RouteCall
    ) throws(Refusal) -> BearerLogin {
        let known = unsigned.flatMap { $0.isOfOtherVersions ? nil : $0 }
        let release = call.caller?.release ?? known
        guard let platform = Platform(release?.platform ?? HostedApp.unknown) else {
            throw Refusal(.unavailable, "a release without a platform")
        }
        var login = BearerLogin(
            account: account.number, app: app.name, release: release?.id, platform: platform, deviceClass: .other,
            deviceName: release.map { "\($0.platform) \($0.version)" } ?? "unsigned login",
            credential: account.registration?.credential ?? account.legacy?.sealed, renewing: .keeping)
        if unsigned != nil { login.opening = .unsigned }
        return login
    }

    /// The login token stays as it is: clients in the field keep the one that they were given.
    private func renew(
        _ app: LegacyApp, _ unsigned: ReleaseKey?, _ call: RouteCall
    ) async throws(Refusal) -> Answer {
        let text = try LegacyForm(of: call.request).value("loginToken")
        guard let loginToken = LoginToken(text.span) else {
            throw Refusal(.sessionEnded, "loginToken: not one of ours")
        }
        let release = call.caller?.release ?? unsigned.flatMap { $0.isOfOtherVersions ? nil : $0 }
        let grant = try await services.bearers.renew(
            loginToken, of: app.name, by: release?.id, app.policy, .keeping, at: call.now)
        return .legacy([
            ("token", .string(grant.token.text)), ("expiresIn", .integer(grant.expires - call.now)),
        ])
    }
}

extension Answer {
    /// JSON that nobody is to keep, without a line break: old clients compare texts.
    fileprivate static func legacy(_ members: [(name: String, value: JSONValue)]) -> Answer {
        Answer(
            status: 200, type: "application/json", fields: [Field("Cache-Control", "no-store")],
            body: Array(JSONValue.object(members).text.utf8))
    }
}
