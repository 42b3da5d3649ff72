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
            Route(method: "POST", path: "/login/start", admission: .release) { (call) throws(Refusal) in
                try await start(call)
            },
            Route(method: "POST", path: "/login/finish", admission: .release) { (call) throws(Refusal) in
                try await finish(call)
            },
        ]
    }

    /// Everything until the answer goes by what was sent, and not by whether there is such an account.
    private func start(_ call: RouteCall) async throws(Refusal) -> RouteAnswer {
        // Its finish would come on another connection, and so to the successor, which does not know it.
        guard !services.handOver.hasHandedOver else {
            throw Refusal(.unavailable, "the server is being restarted", retryAfter: 1)
        }
        let release = try call.release()
        let app = try release.appName()
        let body = try Members(of: call.request.body)
        let binding = LoginBinding(
            app: release.app, account: try body.account(), release: release.id.description, device: try body.device())
        let start = try LoginStart(try body.bytes("ke1", 96), binding, of: app)
        let caller = try await services.caller(of: start, try body.members(ifAny: "proof"), call)
        let answer = try await services.guess(caller, binding.account, of: app, at: call.now) {
            (receipt) throws(Refusal) in
            try await services.steps.attempt { () throws(Refusal) in
                try services.login.start(start, from: caller, receipt, at: call.now)
            }
        }
        var members: [(name: String, value: JSONValue)] = [
            ("login_id", encoded(answer.loginID)), ("ke2", encoded(answer.ke2)), ("app", .string(release.app)),
        ]
        // Tells the client that its finish is to bind it.
        if let storage = binding.device.keyStorage { members.append(("key_storage", .string(storage.rawValue))) }
        return RouteAnswer(.object(members))
    }

    private func finish(_ call: RouteCall) async throws(Refusal) -> RouteAnswer {
        let release = try call.release()
        let finish = try Members(of: call.request.body).finish()
        let proved = try await services.steps.attempt { () throws(Refusal) in
            try services.login.finish(finish, for: .login, at: call.now)
        }
        guard proved.binding.app == release.app, proved.binding.release == release.id.description else {
            throw Login.wrong
        }
        services.refund(proved.receipt, at: call.now)
        return try await services.sessions.open(proved, for: call, of: release)
    }
}
