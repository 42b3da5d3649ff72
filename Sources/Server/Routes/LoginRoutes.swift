import CountersignAuthority
import CountersignGate
import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// `POST login/start` and `/finish`. Source: docs/protocol.md, "Login".
struct LoginRoutes: Sendable {
    let services: AccountServices

    var routes: [Route] {
        [
            Route(.loginStart) {
                (call) throws(Refusal) in
                try await start(call)
            },
            Route(.loginFinish) {
                (call) throws(Refusal) in
                try await finish(call)
            },
        ]
    }

    /// All steps before the answer depend on what was sent, and not on whether the account exists.
    private func start(_ call: RouteCall) async throws(Refusal) -> RouteResult {
        // The finish would come on another connection, and so to the successor, which does not know this
        // login.
        guard !services.handOver.hasHandedOver else {
            throw Refusal(.unavailable, detail: "the server is being restarted", retryAfter: 1)
        }
        let release = try call.release()
        let app = try release.appName()
        let body = try RequestBodyMembers(of: call.request.body)
        let binding = LoginBinding(
            app: release.app, account: try body.account(), release: release.id.description,
            device: try body.device())
        let start = try LoginStart(ke1: try body.bytes("ke1", count: 96), binding: binding, of: app)
        let work = try body.workSolution()
        let caller = try await services.caller(of: start, proof: try body.members(ifAny: "proof"), in: call)
        let answer = try await services.withGuessDebited(
            by: caller, bringing: work, account: binding.account, of: app, at: call.now
        ) {
            (receipt) throws(Refusal) in
            try await services.steps.attempt { () throws(Refusal) in
                try services.login.start(start, from: caller, receipt: receipt, at: call.now)
            }
        }
        var members: [(name: String, value: JSONValue)] = [
            ("login_id", encoded(answer.loginID)), ("ke2", encoded(answer.ke2)),
            ("app", .string(release.app)),
        ]
        // Tells the client to bind its key storage in the finish.
        if let storage = binding.device.keyStorage {
            members.append(("key_storage", .string(storage.rawValue)))
        }
        return RouteResult(.object(members))
    }

    private func finish(_ call: RouteCall) async throws(Refusal) -> RouteResult {
        let release = try call.release()
        let finish = try RequestBodyMembers(of: call.request.body).finish()
        let proved = try await services.steps.attempt { () throws(Refusal) in
            try services.login.finish(finish, for: .login, at: call.now)
        }
        guard proved.binding.app == release.app, proved.binding.release == release.id.description else {
            throw Login.wrongCredentials
        }
        await services.refund(
            proved.receipt, of: proved.account.name, in: proved.account.app, at: call.now)
        return try await services.sessions.open(proved, for: call, of: release)
    }
}

/// `POST login/password`: for clients that cannot speak OPAQUE, if the app's policy allows sending the
/// password itself over TLS. The authority runs OPAQUE's client side for them. Source: docs/protocol.md,
/// "Login".
struct PasswordLoginRoute: Sendable {
    let services: AccountServices

    /// Bytes of a password; a longer one matches no account.
    private static let longest = 1024

    var routes: [Route] {
        [
            Route(.loginPassword) {
                (call) throws(Refusal) in
                try await logIn(call)
            }
        ]
    }

    private func logIn(_ call: RouteCall) async throws(Refusal) -> RouteResult {
        let release = try call.release()
        let app = try release.appName()
        guard release.policy.passwordLogin == .allowed else {
            throw Refusal(.forbidden, detail: "policy password-login=off: the password stays on the device")
        }
        guard call.request.transport == .tls else {
            throw Refusal(.forbidden, detail: "a password is taken over TLS only")
        }
        let body = try RequestBodyMembers(of: call.request.body)
        let account = try body.account()
        let password = try body.secret("password", upTo: PasswordLoginRoute.longest)
        let (kind, name) = try body.members("device").deviceLabel()
        guard let platform = Platform(release.platform) else {
            throw Refusal(.unavailable, detail: "release \(release.id): its platform has no name")
        }
        let (receipt, proved) = try await services.withGuessDebited(
            by: .stranger(call.address), bringing: try body.workSolution(), account: account, of: app,
            at: call.now
        ) {
            (receipt) throws(Refusal) in
            (receipt, try await prove(password, of: account, in: app, at: call.now))
        }
        // A wrong password stays debited, because the guess was made here.
        let proof = try proved.get()
        await services.refund(receipt, of: account, in: app, at: call.now)
        let (holder, credential) = try await settled(proof, at: call.now)
        let login = BearerLogin(
            account: holder.number, app: app, release: release.id, platform: platform, deviceClass: kind,
            deviceName: name.description, credential: credential, renewing: .rotating)
        guard let grant = try await services.bearers.open(login, policy: release.policy, at: call.now) else {
            throw Login.wrongCredentials
        }
        return RouteResult([
            "account": .string(holder.name.description), "session": .string(grant.session.description),
            "token": .string(grant.token.text), "login_token": .string(grant.loginToken.text),
            "expires": .integer(grant.expires), "idle": .integer(grant.idle),
            "slots": .string(release.policy.slots.description),
        ])
    }

    /// What a password proved.
    private enum Proof: Sendable {
        /// The registration with this credential.
        case registered(Account, credential: [UInt8])
        /// The account's rung. The account leaves the ladder with this registration.
        case onLadder(Account, StoredRegistration)
    }

    /// Throws if no password was tried; a tried and wrong password is a result. If the app moves accounts off
    /// the ladder, a password that matches no registration is tried on the ladder, for every name.
    private func prove(
        _ password: Secret, of name: AccountName, in app: AppName, at now: Int64
    ) async throws(Refusal) -> Result<Proof, Refusal> {
        let ladderApp = try ladderApp(app)
        return try await services.passwords.attempt { () throws(Refusal) in
            do throws(Refusal) {
                let proved = try services.login.prove(password, of: name, in: app)
                return .success(.registered(proved.account, credential: proved.credential))
            } catch {
                guard error.code != .unavailable else { throw error }
                guard let ladderApp else { return .failure(error) }
                do throws(Refusal) {
                    let moved = try services.legacyLogins.signIn.judge(
                        password, of: name, in: ladderApp, at: now)
                    return moved.map { .success(.onLadder($0.account, $0.registration)) } ?? .failure(error)
                } catch let outage {
                    // One guess was made, and stays counted even if the second one fails.
                    return .failure(outage)
                }
            }
        }
    }

    private func ladderApp(_ name: AppName) throws(Refusal) -> LegacyApp? {
        do {
            return try services.legacyLogins.apps.app(named: name.description)
        } catch {
            throw Refusal(error, in: "legacy login")
        }
    }

    /// Moves the account off the ladder, if it was on it. Source: decision 0021.
    private func settled(_ proof: Proof, at now: Int64) async throws(Refusal) -> (
        account: Account, credential: [UInt8]
    ) {
        switch proof {
        case .registered(let account, let credential): return (account, credential)
        case .onLadder(let account, let registration):
            let upgraded = try await services.enrolment.upgrade(account, to: registration, at: now)
            guard let upgraded else { throw Login.wrongCredentials }
            return (upgraded, registration.credential)
        }
    }
}
