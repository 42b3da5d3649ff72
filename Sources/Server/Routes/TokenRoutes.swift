import CountersignAuthority
import CountersignGate
import CountersignHandshake
import CountersignWire

/// `POST token`: a session's key is renewed. Source: docs/protocol.md, "Refresh".
struct TokenRoutes: Sendable {
    let sessions: SessionLife
    let bearers: BearerSessions

    var routes: [Route] {
        [
            Route(method: "POST", path: "/token", admission: .release) { (call) throws(Refusal) in
                let body = try Members(of: call.request.body)
                return body.has("login_token") ? try await renew(call, body) : try await refresh(call)
            }
        ]
    }

    /// New tokens for a client that sends them. Source: docs/protocol.md, "Bearer sessions".
    private func renew(_ call: RouteCall, _ body: Members) async throws(Refusal) -> RouteAnswer {
        let release = try call.release()
        let text = Array(try body.text("login_token").utf8)
        guard let loginToken = LoginToken(text.span) else {
            throw body.malformed("login_token", expected: "`l_` and 43 characters of base64url")
        }
        let grant = try await bearers.renew(
            loginToken, of: try release.appName(), by: release.id, release.policy, .rotating, at: call.now)
        return RouteAnswer([
            "token": .string(grant.token.text), "login_token": .string(grant.loginToken.text),
            "expires": .integer(grant.expires), "idle": .integer(grant.idle),
        ])
    }

    private func refresh(_ call: RouteCall) async throws(Refusal) -> RouteAnswer {
        guard let release = call.caller?.release else { throw Refusal(.unsigned, "this route is a release's") }
        let sent = try Sent(call.request.body)
        let request = RefreshRequest(
            release: release, token: sent.token, attempt: sent.attempt, time: sent.time, mac: sent.mac,
            signature: sent.signature)
        let renewed = try await sessions.refresh(request, at: call.now)
        return RouteAnswer(
            [
                "token": .string(renewed.token.description), "epoch": .integer(Int64(renewed.token.epoch)),
                "ephemeral": .string(Base64.encode(renewed.ephemeral.span, .url)), "expires": .integer(renewed.expires),
                "idle": .integer(renewed.idleEnd),
            ], signer: renewed.signer)
    }

    /// What stands in the body.
    struct Sent {
        let token: SessionToken
        let attempt: [UInt8]
        let time: Int64
        let mac: [UInt8]
        let signature: [UInt8]

        init(_ body: [UInt8]) throws(Refusal) {
            let body = try Members(of: body)
            guard let token = SessionToken(try body.text("token")) else {
                throw body.malformed("token", expected: "a session's token: s_ID.EPOCH")
            }
            self.token = token
            attempt = try body.bytes("attempt", RefreshTranscript.attemptCount)
            time = try body.integer("time")
            mac = try body.bytes("mac", 32)
            signature = try body.bytes("signature", 64)
        }
    }
}
