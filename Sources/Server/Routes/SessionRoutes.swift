import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignHandshake
import CountersignSeal
import CountersignWire

/// The routes by which a session reads and ends the sessions of its account. Source: docs/protocol.md,
/// "Sessions".
struct SessionRoutes: Sendable {
    /// Sessions that are listed, besides the caller's own: each costs the loop some microseconds.
    static let mostListed = 100

    let sessions: SessionLifecycle

    var routes: [Route] {
        [
            Route(.logout) { (call) throws(Refusal) in
                try await logout(call)
            },
            Route(.session) { (call) throws(Refusal) in
                try await own(call)
            },
            Route(.sessions) { (call) throws(Refusal) in
                try await all(call)
            },
            Route(.sessionRevoke) { (call) throws(Refusal) in
                try await revoke(call)
            },
        ]
    }

    private func logout(_ call: RouteCall) async throws(Refusal) -> RouteResult {
        try await sessions.end(.one(call.session().id), with: SessionTermination(.signedOut, at: call.now))
        return RouteResult([:])
    }

    private func own(_ call: RouteCall) async throws(Refusal) -> RouteResult {
        let session = try call.session()
        guard let row = try await sessions.read(session.id) else {
            throw Refusal(.unknownKey, detail: "session \(session.id) is gone")
        }
        let account = try await account(of: session)
        var members: [(name: String, value: JSONValue)] = [
            ("account", .string(account.name.description)), ("epoch", .integer(Int64(session.epoch))),
            ("expires", .integer(try sessions.expiry(of: session, row: row, at: call.now))),
        ]
        members += try shown(row)
        return RouteResult(.object(members))
    }

    private func all(_ call: RouteCall) async throws(Refusal) -> RouteResult {
        let session = try call.session()
        // One more than is listed, to detect whether there are more.
        var rows = try await sessions.readLive(
            of: session.account.number, newest: SessionRoutes.mostListed + 1)
        let isWhole = rows.count <= SessionRoutes.mostListed
        if !isWhole { rows.removeFirst() }
        // Sessions that were not renewed in time are refused, although they were never ended.
        var live: [StoredSession] = []
        for row in rows where try sessions.idleEnd(of: row) > call.now { live.append(row) }
        rows = live
        if !rows.contains(where: { $0.id == session.id }), let own = try await sessions.read(session.id) {
            rows.insert(own, at: 0)
        }
        var list: [JSONValue] = []
        for row in rows {
            var members = try shown(row)
            members.append(("platform", .string(row.platform.description)))
            if row.id == session.id { members.append(("current", .bool(true))) }
            list.append(.object(members))
        }
        return RouteResult(["sessions": .array(list), "more": .bool(!isWhole)])
    }

    private func revoke(_ call: RouteCall) async throws(Refusal) -> RouteResult {
        let session = try call.session()
        guard let id = SessionID(call.parameter) else { return RouteResult(.notFound) }
        let account = try await account(of: session)
        let isDone = try await sessions.revoke(id, by: account, from: session.id, at: call.now)
        return isDone ? RouteResult([:]) : RouteResult(.notFound)
    }

    private func account(of session: Session) async throws(Refusal) -> Account {
        guard let account = try await sessions.readAccount(session.account.number) else {
            throw Refusal(.unavailable, detail: "session \(session.id): its account is not in the store")
        }
        return account
    }

    private func shown(_ row: StoredSession) throws(Refusal) -> [(name: String, value: JSONValue)] {
        [
            ("session", .string(row.id.description)),
            ("device", ["class": .string(row.deviceClass.rawValue), "name": .string(row.deviceName)]),
            ("key_storage", .optional(row.keyStorage?.rawValue)),
            ("created", .integer(row.created)), ("used", .integer(row.used)),
            ("idle", .integer(try sessions.idleEnd(of: row))),
        ]
    }
}

extension RouteCall {
    /// The session that calls.
    func session() throws(Refusal) -> Session {
        guard let session = caller?.session else {
            throw Refusal(.sessionRequired, detail: "this route needs a session")
        }
        return session
    }
}

/// `POST token`: renews a session's key. Source: docs/protocol.md, "Refresh".
struct TokenRoutes: Sendable {
    let sessions: SessionLifecycle
    let bearers: BearerSessions

    var routes: [Route] {
        [
            Route(.token) {
                (call) throws(Refusal) in
                let body = try RequestBodyMembers(of: call.request.body)
                return body.has("login_token") ? try await renew(call, body: body) : try await refresh(call)
            }
        ]
    }

    /// New tokens for a client that sends them. Source: docs/protocol.md, "Bearer sessions".
    private func renew(_ call: RouteCall, body: RequestBodyMembers) async throws(Refusal) -> RouteResult {
        let release = try call.release()
        let text = Array(try body.text("login_token").utf8)
        guard let loginToken = LoginToken(text.span) else {
            throw body.malformed("login_token", expected: "`l_` and 43 characters of base64url")
        }
        let grant = try await bearers.renew(
            loginToken, of: try release.appName(), by: release.id, policy: release.policy,
            loginTokenRule: .rotating, at: call.now)
        return RouteResult([
            "token": .string(grant.token.text), "login_token": .string(grant.loginToken.text),
            "expires": .integer(grant.expires), "idle": .integer(grant.idle),
        ])
    }

    private func refresh(_ call: RouteCall) async throws(Refusal) -> RouteResult {
        guard let release = call.caller?.release else {
            throw Refusal(.unsigned, detail: "this route is a release's")
        }
        let sent = try TokenExchange(call.request.body)
        let request = RefreshRequest(
            release: release, token: sent.token, attempt: sent.attempt, time: sent.time,
            counter: sent.counter, nonce: sent.nonce, purpose: sent.purpose, mac: sent.mac,
            signature: sent.signature)
        let renewed = try await sessions.refresh(request, at: call.now)
        return RouteResult(
            [
                "token": .string(renewed.token.description), "epoch": .integer(Int64(renewed.token.epoch)),
                "ephemeral": .string(Base64.encode(renewed.ephemeral.span, as: .url)),
                "expires": .integer(renewed.expires),
                "idle": .integer(renewed.idleEnd),
            ], signer: renewed.signer)
    }

    /// The members of the body.
    struct TokenExchange {
        let token: SessionToken
        let attempt: [UInt8]
        let time: Int64
        let counter: Int64
        let nonce: [UInt8]
        let purpose: RefreshTranscript.Purpose
        let mac: [UInt8]
        let signature: [UInt8]

        init(_ body: [UInt8]) throws(Refusal) {
            let body = try RequestBodyMembers(of: body)
            guard let token = SessionToken(try body.text("token")) else {
                throw body.malformed("token", expected: "a session's token: s_ID.EPOCH")
            }
            self.token = token
            attempt = try body.bytes("attempt", count: RefreshTranscript.attemptCount)
            time = try body.integer("time")
            counter = try body.integer("counter", in: 1...(1 << 53))
            nonce = try body.bytes("nonce", count: RefreshTranscript.nonceCount)
            let words = RefreshTranscript.Purpose.allCases.map(\.rawValue)
            let word =
                body.has("purpose") ? try body.text("purpose") : RefreshTranscript.Purpose.renew.rawValue
            guard let purpose = RefreshTranscript.Purpose(rawValue: word) else {
                throw body.malformed("purpose", expected: words.joined(separator: " or "))
            }
            self.purpose = purpose
            mac = try body.bytes("mac", count: 32)
            signature = try body.bytes("signature", count: 64)
        }
    }
}
