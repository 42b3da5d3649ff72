import CountersignAuthority
import CountersignGate
import CountersignHandshake
import CountersignSeal
import CountersignWire

/// `POST login/password`: for clients that cannot speak OPAQUE, where the app's team lets them send the password itself, over
/// TLS. The authority runs OPAQUE's client in their place. Source: docs/protocol.md, "Login".
struct PasswordLoginRoute: Sendable {
    let services: AccountServices

    /// Bytes of a password; more is nobody's.
    private static let longest = 1024

    var routes: [Route] {
        [
            Route(method: "POST", path: "/login/password", admission: .release) { (call) throws(Refusal) in
                try await logIn(call)
            }
        ]
    }

    private func logIn(_ call: RouteCall) async throws(Refusal) -> RouteAnswer {
        let release = try call.release()
        let app = try release.appName()
        guard release.policy.passwordLogin == .allowed else {
            throw Refusal(.forbidden, "policy password-login=off: the password stays on the device")
        }
        guard call.request.transport == .tls else {
            throw Refusal(.forbidden, "a password is taken over TLS only")
        }
        let body = try Members(of: call.request.body)
        let account = try body.account()
        let password = try body.secret("password", upTo: PasswordLoginRoute.longest)
        let (kind, name) = try body.members("device").deviceLabel()
        guard let platform = Platform(release.platform) else {
            throw Refusal(.unavailable, "release \(release.id): its platform has no name")
        }
        let (receipt, proved) = try await services.guess(.stranger(call.address), account, of: app, at: call.now) {
            (receipt) throws(Refusal) in (receipt, try await prove(password, of: account, in: app, at: call.now))
        }
        // A wrong password stays debited: this is where it was guessed.
        let proof = try proved.get()
        services.refund(receipt, at: call.now)
        let (holder, credential) = try await settled(proof, at: call.now)
        let login = BearerLogin(
            account: holder.number, app: app, release: release.id, platform: platform, deviceClass: kind,
            deviceName: name.description, credential: credential, renewing: .rotating)
        guard let grant = try await services.bearers.open(login, release.policy, at: call.now) else {
            throw Login.wrong
        }
        return RouteAnswer([
            "account": .string(holder.name.description), "session": .string(grant.session.description),
            "token": .string(grant.token.text), "login_token": .string(grant.loginToken.text),
            "expires": .integer(grant.expires), "idle": .integer(grant.idle),
            "slots": .string(release.policy.slots.description),
        ])
    }

    /// What a password opened.
    private enum Proof: Sendable {
        /// The registration of that credential.
        case registered(Account, credential: [UInt8])
        /// The account's rung. It leaves the ladder by this registration.
        case onLadder(Account, StoredRegistration)
    }

    /// Throws where nothing was tried; a password that was tried and is wrong is a result. Where the app wants accounts moved off
    /// the ladder, one that opens no registration is tried on it, whatever the name.
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
                    let moved = try services.ladder.signIn.judge(password, of: name, in: ladderApp, at: now)
                    return moved.map { .success(.onLadder($0.account, $0.registration)) } ?? .failure(error)
                } catch let outage {
                    // A guess was made, and stays counted, whatever becomes of the second one.
                    return .failure(outage)
                }
            }
        }
    }

    private func ladderApp(_ name: AppName) throws(Refusal) -> LegacyApp? {
        do throws(Fault) {
            return try services.ladder.apps.app(named: name.description)
        } catch {
            throw Refusal(.unavailable, "legacy login: \(error.message)", retryAfter: 5)
        }
    }

    /// Off the ladder, where it was on it. Source: decision 0021.
    private func settled(_ proof: Proof, at now: Int64) async throws(Refusal) -> (account: Account, credential: [UInt8])
    {
        switch proof {
        case .registered(let account, let credential): return (account, credential)
        case .onLadder(let account, let registration):
            let upgraded = try await services.enrolment.upgrade(account, to: registration, at: now)
            guard let upgraded else { throw Login.wrong }
            return (upgraded, registration.credential)
        }
    }
}
