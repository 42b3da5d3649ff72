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
            (receipt) throws(Refusal) in (receipt, try await prove(password, of: account, in: app))
        }
        // A wrong password stays debited: this is where it was guessed.
        let (holder, credential) = try proved.get()
        services.refund(receipt, at: call.now)
        let login = BearerLogin(
            account: holder.number, app: app, release: release.id, platform: platform, deviceClass: kind,
            deviceName: name.description, credential: credential)
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

    /// Throws where nothing was tried; a password that was tried and is wrong is a result.
    private func prove(
        _ password: Secret, of account: AccountName, in app: AppName
    ) async throws(Refusal) -> Result<(account: Account, credential: [UInt8]), Refusal> {
        try await services.passwords.attempt { () throws(Refusal) in
            do throws(Refusal) {
                return .success(try services.login.prove(password, of: account, in: app))
            } catch {
                guard error.code != .unavailable else { throw error }
                return .failure(error)
            }
        }
    }
}
