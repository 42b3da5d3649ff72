import CountersignAuthority
import CountersignGate
import CountersignHandshake
import CountersignWire

/// `POST token`: a session's key is renewed. Source: docs/protocol.md, "Refresh".
struct TokenRoutes: Sendable {
    let sessions: SessionLife

    var routes: [Route] {
        [
            Route(method: "POST", path: "/token", admission: .release) { (call) throws(Refusal) in
                try await refresh(call)
            }
        ]
    }

    private func refresh(_ call: RouteCall) async throws(Refusal) -> RouteAnswer {
        guard let release = call.caller?.release else { throw Refusal(.unsigned, "this route is a release's") }
        let body = try Members(of: call.request.body)
        guard let token = SessionToken(try body.text("token")) else {
            throw body.malformed("token", expected: "a session's token: s_ID.EPOCH")
        }
        let request = RefreshRequest(
            release: release, token: token,
            attempt: try body.bytes("attempt", RefreshTranscript.attemptCount), time: try body.integer("time"),
            mac: try body.bytes("mac", 32), signature: try body.bytes("signature", 64))
        let renewed = try await sessions.refresh(request, at: call.now)
        return RouteAnswer(
            [
                "token": .string(renewed.token.description), "epoch": .integer(Int64(renewed.token.epoch)),
                "ephemeral": .string(Base64.encode(renewed.ephemeral.span, .url)), "expires": .integer(renewed.expires),
                "idle": .integer(renewed.idleEnd),
            ], signer: renewed.signer)
    }
}
