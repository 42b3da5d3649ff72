import CountersignGate
import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Sessions of tokens that are sent, for clients without OPAQUE: how they begin and go on. Source: docs/protocol.md, "Bearer
/// sessions"; decision 0020.
package final class BearerSessions: Sendable {
    /// Seconds within which the same login token gets the same answer once more: many requests that fail at once may each
    /// ask for a new token, and an answer may get lost.
    package static let sameAnswerSeconds: Int64 = 10

    private let deployment: Deployment
    private let key: HMACSHA256
    private let writer: any StoreWriter
    /// Told of each session that changed, once that is durable.
    private let live: LiveSessions
    private let random: any RandomSource

    /// Makes the deployment's key where it has none yet.
    package init(
        _ deployment: Deployment, _ live: LiveSessions, _ writer: any StoreWriter,
        random: any RandomSource = SystemRandom()
    ) throws(Fault) {
        self.deployment = deployment
        self.key = try deployment.bearerKey()
        self.writer = writer
        self.random = random
        self.live = live
    }

    /// Begins a session for who has just proved the account's password, and ends those that its slot has no room for. Nil
    /// where the account has been locked, removed or given another credential meanwhile. `now` is whole Unix seconds.
    nonisolated(nonsending) package func open(
        _ login: BearerLogin, _ policy: Policy, at now: Int64
    ) async throws(Refusal) -> BearerGrant? {
        let loginToken = LoginToken(random: random)
        guard let id = loginToken.session(login.habit), let token = loginToken.token(of: id, issued: now, under: key)
        else { throw BearerSessions.noSession }
        var session = StoredSession(
            id: id, account: login.account, app: login.app, platform: login.platform,
            deviceClass: login.deviceClass, deviceName: login.deviceName, created: now,
            credentials: .bearer(
                BearerCredentials(
                    tokenHash: token.hash, tokenExpires: now + policy.tokenLifetime, issued: now,
                    loginTokenHash: loginToken.hash)))
        session.release = login.release
        session.opening = login.opening
        let (slots, drafted) = (policy.slots, session)
        let opened = try await writer.write { (store) throws(Fault) in
            try store.open(drafted, proving: login.credential, slots: slots, at: now)
        }
        guard case .yes(let stored, let ended, let forgotten) = opened else { return nil }
        live.take([stored] + ended)
        live.forget(forgotten)
        return BearerGrant(stored, token, loginToken, policy)
    }

    /// New tokens for who holds the login token of one of this app's sessions; `release` is whose call that is, where one
    /// signed it. Refused as `session-ended` where that is over, or
    /// never was.
    nonisolated(nonsending) package func renew(
        _ loginToken: LoginToken, of app: AppName, by release: KeyID?, _ policy: Policy, _ habit: BearerRenewal.Habit,
        at now: Int64
    ) async throws(Refusal) -> BearerGrant {
        guard let id = try session(of: loginToken, habit) else { throw BearerSessions.noSession }
        let renewal = BearerRenewal(
            presented: loginToken, release: release, habit: habit, lifetime: policy.tokenLifetime,
            idle: policy.sessionIdle, now: now, key: key)
        let reuse = deployment.recording(.sessionReuse, .session(id, of: app), by: .server)
        let outcome = try await writer.write { (store) throws(Fault) in
            try renewal.run(id, of: app, in: store, recording: reuse)
        }
        switch outcome {
        case .renewed(let session, let token, let loginToken):
            live.take([session])
            return BearerGrant(session, token, loginToken, policy)
        case .ended(let session, let end):
            live.take([session])
            throw Refusal(.sessionEnded, "the session ended: \(end.reason.rawValue)")
        case .none: throw BearerSessions.noSession
        }
    }

    /// The session of this app that the token belongs to, also if it has ended; nil if there is none. The
    /// token before the current one is accepted, too.
    package func session(bearing token: [UInt8], of app: AppName) throws(Refusal) -> Session? {
        do throws(Fault) {
            let session = try live.find(bearing: token.span)
            return session?.app == app.description ? session : nil
        } catch {
            throw Refusal(.unavailable, "sessions: \(error.message)", retryAfter: 5)
        }
    }

    /// Ends the sessions of this app that the token and the login token belong to; the login token counts
    /// only for sessions opened by a rung of the login ladder. An unknown token, or one of an ended session,
    /// changes nothing and gets the same result. `now` is in whole Unix seconds.
    nonisolated(nonsending) package func signOut(
        token: [UInt8]?, loginToken: [UInt8]?, of app: AppName, at now: Int64
    ) async throws(Refusal) {
        let session = try token.flatMap { (token) throws(Refusal) in
            try self.session(bearing: token, of: app)
        }
        let bearing = session.flatMap { $0.end == nil ? $0.id : nil }
        let presented = loginToken.flatMap { LoginToken($0.span) }
        let named = try presented.flatMap { (token) throws(Refusal) in try self.session(of: token, .keeping) }
        guard bearing != nil || named != nil else { return }
        let end = SessionEnd(.signedOut, at: now)
        let rows = try await writer.write { (store) throws(Fault) in
            var ended: [SessionID] = []
            if let bearing { ended += try store.end(.one(bearing), end, recording: nil) }
            if let named, let presented, let row = try store.session(named), row.app == app,
                case .bearer(let credentials) = row.credentials, presented.matches(credentials.loginTokenHash)
            {
                ended += try store.end(.one(named), end, recording: nil)
            }
            return try SessionLife.rows(of: ended, in: store)
        }
        live.take(rows)
    }

    /// Anybody may send login tokens by the thousand: only those that could be somebody's take a place in the writer's line. What the
    /// ladder opened may be renewed with more care than it asks for.
    private func session(
        of loginToken: LoginToken, _ habit: BearerRenewal.Habit
    ) throws(Refusal) -> SessionID? {
        let habits: [BearerRenewal.Habit] = habit == .keeping ? [.keeping] : [.rotating, .keeping]
        do throws(Fault) {
            for habit in habits {
                if let id = loginToken.session(habit), try live.knows(id) { return id }
            }
            return nil
        } catch {
            throw Refusal(.unavailable, "sessions: \(error.message)", retryAfter: 5)
        }
    }

    private static let noSession = Refusal(.sessionEnded, "no session has this login token")
}

/// Who signs in, once the password was proved.
package struct BearerLogin: Sendable {
    /// The account's number.
    package var account: Int64
    package var app: AppName
    package var platform: Platform
    package var deviceClass: Device.Class
    package var deviceName: String
    /// What was proved: a credential's name, or what is sealed for the account's rung (``Account/isProved(by:)``).
    package var credential: [UInt8]?
    /// Nil where no release signed the login, and none is known by what it says.
    package var release: KeyID?
    package var opening = Session.Opening.signed
    /// How its client renews: ``BearerRenewal/Habit/keeping`` for what the ladder opened.
    package var habit: BearerRenewal.Habit

    package init(
        account: Int64, app: AppName, release: KeyID?, platform: Platform, deviceClass: Device.Class,
        deviceName: String, credential: [UInt8]?, renewing habit: BearerRenewal.Habit
    ) {
        self.habit = habit
        self.account = account
        self.app = app
        self.release = release
        self.platform = platform
        self.deviceClass = deviceClass
        self.deviceName = deviceName
        self.credential = credential
    }
}

/// What the client is told, once.
package struct BearerGrant: Sendable {
    package let session: SessionID
    package let token: BearerToken
    package let loginToken: LoginToken
    /// From then on the token is refused: whole Unix seconds.
    package let expires: Int64
    /// From then on the session has ended, if it is not renewed before: whole Unix seconds.
    package let idle: Int64

    init(_ session: StoredSession, _ token: BearerToken, _ loginToken: LoginToken, _ policy: Policy) {
        self.session = session.id
        self.token = token
        self.loginToken = loginToken
        if case .bearer(let credentials) = session.credentials {
            expires = credentials.tokenExpires
        } else {
            expires = session.used
        }
        idle = session.used + policy.sessionIdle
    }
}
