import CountersignGate
import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Opens, renews and ends bearer sessions, for clients without OPAQUE. Source: docs/protocol.md, "Bearer
/// sessions"; decision 0020.
package final class BearerSessions: Sendable {
    /// Seconds within which a repeated renewal with the same login token gets the same answer: many
    /// requests that fail at once may each ask for a new token, and an answer may get lost.
    package static let sameAnswerSeconds: Int64 = 10

    private let deployment: Deployment
    private let key: HMACSHA256
    private let writer: any StoreWriter
    /// Receives each changed session once the change is durable.
    private let directory: SessionDirectory
    private let threads: StoreReadThreads
    private let random: any RandomSource

    /// Creates the deployment's bearer key if there is none yet.
    package init(
        _ deployment: Deployment, directory live: SessionDirectory, writer: any StoreWriter,
        reading threads: StoreReadThreads = StoreReadThreads(nil), random: any RandomSource = SystemRandom()
    ) throws(OperationalError) {
        self.deployment = deployment
        self.key = try deployment.bearerKey()
        self.writer = writer
        self.threads = threads
        self.random = random
        self.directory = live
    }

    /// Opens a session after the account's password was verified, and ends those that its slot rule has no
    /// room for. Returns nil if the account was locked, removed or given another credential meanwhile.
    /// `now` is in whole Unix seconds.
    package func open(
        _ login: BearerLogin, policy: Policy, at now: Int64
    ) async throws(Refusal) -> BearerGrant? {
        let loginToken = LoginToken(random: random)
        guard let id = loginToken.session(login.loginTokenRule),
            let token = loginToken.token(of: id, issued: now, under: key)
        else { throw BearerSessions.noSession }
        var session = StoredSession(
            id: id, account: login.account, app: login.app, platform: login.platform,
            deviceClass: login.deviceClass, deviceName: login.deviceName, created: now,
            credentials: .bearer(
                BearerCredentials(
                    tokenHash: token.hash, tokenExpires: policy.tokenEnd(from: now, created: now),
                    issued: now,
                    loginTokenHash: loginToken.hash)))
        session.release = login.release
        session.opening = login.opening
        let (slots, drafted) = (policy.slots, session)
        let opened = try await writer.write { (store) throws(OperationalError) in
            try store.open(drafted, proving: login.credential, slots: slots, at: now)
        }
        guard case .yes(let stored, let ended, let forgotten) = opened else { return nil }
        directory.apply([stored] + ended)
        directory.forget(forgotten)
        return BearerGrant(stored, token: token, loginToken: loginToken, policy: policy)
    }

    /// Renews the tokens of the session of this app that `loginToken` belongs to. `release` is the release
    /// that signed the call, or nil if none did. Refuses with `session-ended` if the session has ended or
    /// never existed.
    package func renew(
        _ loginToken: LoginToken, of app: AppName, by release: KeyID?, policy: Policy,
        loginTokenRule habit: BearerRenewal.LoginTokenRule,
        at now: Int64
    ) async throws(Refusal) -> BearerGrant {
        guard let id = try session(of: loginToken, loginTokenRule: habit) else {
            throw BearerSessions.noSession
        }
        let renewal = BearerRenewal(
            presented: loginToken, release: release, loginTokenRule: habit, policy: policy, now: now, key: key
        )
        let reuse = deployment.auditDraft(for: .sessionReuse, on: .session(id, of: app), by: .server)
        let outcome = try await writer.write { (store) throws(OperationalError) in
            try renewal.run(id, of: app, in: store, recording: reuse)
        }
        switch outcome {
        case .renewed(let session, let token, let loginToken):
            directory.apply([session])
            return BearerGrant(session, token: token, loginToken: loginToken, policy: policy)
        case .ended(let session, let end):
            directory.apply([session])
            throw Refusal(.sessionEnded, detail: "the session ended: \(end.reason.rawValue)")
        case .expired(let end):
            throw Refusal(
                .sessionEnded, detail: "the session ended: \(SessionTermination.Reason.expired.rawValue)",
                decidedAt: end)
        case .none: throw BearerSessions.noSession
        }
    }

    /// The session of this app that the token belongs to, also if it has ended; nil if there is none. The
    /// token before the current one is accepted, too.
    package func session(bearing token: [UInt8], of app: AppName) async throws(Refusal) -> Session? {
        let session = try await threads.run { [directory] () throws(OperationalError) in
            try directory.session(bearing: token.span)
        }
        return session?.app == app.description ? session : nil
    }

    /// Ends the sessions of this app that the token and the login token belong to; the login token counts
    /// only for sessions opened by a rung of the login ladder. An unknown token, or one of an ended session,
    /// changes nothing and gets the same result. `now` is in whole Unix seconds.
    package func signOut(
        token: [UInt8]?, loginToken: [UInt8]?, of app: AppName, at now: Int64
    ) async throws(Refusal) {
        let session = if let token { try await self.session(bearing: token, of: app) } else { Session?.none }
        let bearing = session.flatMap { $0.end == nil ? $0.id : nil }
        let presented = loginToken.flatMap { LoginToken($0.span) }
        let named = try presented.flatMap { (token) throws(Refusal) in
            try self.session(of: token, loginTokenRule: .keeping)
        }
        guard bearing != nil || named != nil else { return }
        let end = SessionTermination(.signedOut, at: now)
        let rows = try await writer.write { (store) throws(OperationalError) in
            var ended: [SessionID] = []
            if let bearing { ended += try store.end(.one(bearing), with: end, recording: nil) }
            if let named, let presented, let row = try store.session(named), row.app == app,
                case .bearer(let credentials) = row.credentials, presented.matches(credentials.loginTokenHash)
            {
                ended += try store.end(.one(named), with: end, recording: nil)
            }
            return try SessionLifecycle.rows(of: ended, in: store)
        }
        directory.apply(rows)
    }

    /// Finds the session of a login token in memory, so that made-up login tokens never reach the writer's
    /// queue. A call with the rule `.rotating` may also renew a session that the login ladder opened.
    private func session(
        of loginToken: LoginToken, loginTokenRule habit: BearerRenewal.LoginTokenRule
    ) throws(Refusal) -> SessionID? {
        let habits: [BearerRenewal.LoginTokenRule] = habit == .keeping ? [.keeping] : [.rotating, .keeping]
        do {
            for habit in habits {
                if let id = loginToken.session(habit), try directory.knows(id) { return id }
            }
            return nil
        } catch {
            throw Refusal(error, in: "sessions")
        }
    }

    private static let noSession = Refusal(.sessionEnded, detail: "no session has this login token")
}

/// A login whose password was verified, and the session to open for it.
package struct BearerLogin: Sendable {
    /// The account's number.
    package var account: Int64
    package var app: AppName
    package var platform: Platform
    package var deviceClass: Device.Class
    package var deviceName: String
    /// The credential that was verified: the name of an OPAQUE credential, or the sealed value of the
    /// account's rung (``Account/isProved(by:)``).
    package var credential: [UInt8]?
    /// Nil if no release signed the login and its contents name no known release.
    package var release: KeyID?
    package var opening = Session.LoginKind.signed
    /// How the client renews: ``BearerRenewal/LoginTokenRule/keeping`` for sessions that the login ladder
    /// opened.
    package var loginTokenRule: BearerRenewal.LoginTokenRule

    package init(
        account: Int64, app: AppName, release: KeyID?, platform: Platform, deviceClass: Device.Class,
        deviceName: String, credential: [UInt8]?, renewing habit: BearerRenewal.LoginTokenRule
    ) {
        self.loginTokenRule = habit
        self.account = account
        self.app = app
        self.release = release
        self.platform = platform
        self.deviceClass = deviceClass
        self.deviceName = deviceName
        self.credential = credential
    }
}

/// The answer to a login or renewal. Its tokens are handed out only here.
package struct BearerGrant: Sendable {
    package let session: SessionID
    package let token: BearerToken
    package let loginToken: LoginToken
    /// Whole Unix seconds from which the token is refused.
    package let expires: Int64
    /// Whole Unix seconds at which the session ends unless it is renewed before.
    package let idle: Int64

    init(_ session: StoredSession, token: BearerToken, loginToken: LoginToken, policy: Policy) {
        self.session = session.id
        self.token = token
        self.loginToken = loginToken
        if case .bearer(let credentials) = session.credentials {
            expires = credentials.tokenExpires
        } else {
            expires = session.used
        }
        idle = policy.sessionEnd(used: session.used, created: session.created)
    }
}

/// One renewal, run on the writer's thread: it decides by the stored row, and replaces the row only if it
/// has not changed.
package struct BearerRenewal: Sendable {
    /// Whether a renewal replaces the login token.
    package enum LoginTokenRule: Sendable {
        /// Each renewal replaces the login token, so that use of a copied one is detected; for our own
        /// protocol.
        case rotating
        /// The login token stays, as clients in the field expect. Source: legacy clients' `POST
        /// /login/token.php`.
        case keeping
    }

    enum Outcome: Sendable {
        case renewed(StoredSession, BearerToken, LoginToken)
        /// The session had ended before, or this renewal ended it; only the holder of its login token
        /// learns this.
        case ended(StoredSession, SessionTermination)
        /// The session was not renewed by this time, in whole Unix seconds. Its row stays unchanged, because
        /// the session may not be over by another clock.
        case expired(Int64)
        case none
    }

    let presented: LoginToken
    /// The release that signed the call; nil if none did.
    let release: KeyID?
    let loginTokenRule: LoginTokenRule
    let policy: Policy
    /// Whole Unix seconds.
    let now: Int64
    let key: HMACSHA256

    func run(_ id: SessionID, of app: AppName, in store: any Store, recording draft: AuditDraft)
        throws(OperationalError)
        -> Outcome
    {
        // Another process may change the row between the read and the swap; the swap then fails and the
        // loop reads again.
        while true {
            guard let session = try store.session(id), session.app == app,
                case .bearer(let old) = session.credentials
            else { return .none }
            if let end = session.end { return .ended(session, end) }
            let sessionEnd = policy.sessionEnd(used: session.used, created: session.created)
            guard sessionEnd > now else { return .expired(sessionEnd) }
            // This check comes first, because one of several simultaneous calls may already have used its
            // answer.
            if let (token, loginToken) = repeatedGrant(of: id, credentials: old) {
                return .renewed(session, token, loginToken)
            }
            // The login token is neither the current one nor a previous one whose successor is still
            // unused: two parties hold copies.
            guard
                presented.matches(old.loginTokenHash)
                    || old.previousLoginTokenHash.map(presented.matches) == true
            else {
                return try end(
                    session, with: SessionTermination(.reused, at: now), in: store, recording: draft)
            }
            guard let (next, token, loginToken) = next(of: session, after: old) else { return .none }
            switch try store.swap(id, from: .bearer(old), to: .bearer(next), by: release, at: now) {
            case .yes(let session): return .renewed(session, token, loginToken)
            case .moved: continue
            case .missing: return .none
            }
        }
    }

    /// The answer that this login token got within the last `sameAnswerSeconds`; the store stays unchanged.
    private func repeatedGrant(
        of id: SessionID, credentials old: BearerCredentials
    ) -> (token: BearerToken, loginToken: LoginToken)? {
        let successor = successor(old.issued)
        guard now - old.issued < BearerSessions.sameAnswerSeconds, now < old.tokenExpires,
            successor.matches(old.loginTokenHash),
            let token = successor.token(of: id, issued: old.issued, under: key)
        else { return nil }
        return (token, successor)
    }

    /// The credentials that replace `old`.
    private func next(
        of session: StoredSession, after old: BearerCredentials
    ) -> (BearerCredentials, token: BearerToken, loginToken: LoginToken)? {
        // The issue time always increases, even if the clock was set back: equal times would derive equal
        // tokens.
        let issued = max(now, old.issued + 1)
        let successor = successor(issued)
        guard let token = successor.token(of: session.id, issued: issued, under: key) else { return nil }
        var next = BearerCredentials(
            tokenHash: token.hash, tokenExpires: policy.tokenEnd(from: now, created: session.created),
            issued: issued,
            loginTokenHash: successor.hash)
        next.previousTokenHash = old.tokenHash
        if loginTokenRule == .rotating { next.previousLoginTokenHash = presented.hash }
        return (next, token, successor)
    }

    private func successor(_ issued: Int64) -> LoginToken {
        switch loginTokenRule {
        case .rotating: presented.successor(issued: issued, under: key)
        case .keeping: presented
        }
    }

    private func end(
        _ session: StoredSession, with end: SessionTermination, in store: any Store,
        recording draft: AuditDraft?
    ) throws(OperationalError) -> Outcome {
        _ = try store.end(.one(session.id), with: end, recording: draft)
        guard let session = try store.session(session.id), let end = session.end else { return .none }
        return .ended(session, end)
    }
}
