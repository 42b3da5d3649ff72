import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignHandshake
import CountersignSeal
import CountersignWire

/// What a session may ask about itself and the others of its account. Source: docs/protocol.md, "Sessions".
struct SessionRoutes: Sendable {
    /// Sessions that are listed, besides one's own: each costs the loop some microseconds.
    static let mostListed = 100

    let sessions: SessionLife

    var routes: [Route] {
        [
            Route(method: "POST", path: "/logout", admission: .session) { (call) throws(Refusal) in
                try await logout(call)
            },
            Route(method: "GET", path: "/session", admission: .session) { (call) throws(Refusal) in
                try own(call)
            },
            Route(method: "GET", path: "/sessions", admission: .session) { (call) throws(Refusal) in
                try all(call)
            },
            Route(method: "DELETE", path: "/sessions/*", admission: .session) { (call) throws(Refusal) in
                try await revoke(call)
            },
        ]
    }

    private func logout(_ call: RouteCall) async throws(Refusal) -> RouteAnswer {
        try await sessions.end(.one(call.session().id), SessionEnd(.signedOut, at: call.now))
        return RouteAnswer([:])
    }

    private func own(_ call: RouteCall) throws(Refusal) -> RouteAnswer {
        let session = try call.session()
        guard let row = try sessions.read(session.id) else {
            throw Refusal(.unknownKey, "session \(session.id) is gone")
        }
        let account = try account(of: session)
        var members: [(name: String, value: JSONValue)] = [
            ("account", .string(account.name.description)), ("epoch", .integer(Int64(session.epoch))),
            ("expires", .integer(try sessions.expiry(of: session, row, at: call.now))),
        ]
        members += try shown(row)
        return RouteAnswer(.object(members))
    }

    private func all(_ call: RouteCall) throws(Refusal) -> RouteAnswer {
        let session = try call.session()
        // One more, to see whether there are more.
        var rows = try sessions.readLive(of: session.account.number, newest: SessionRoutes.mostListed + 1)
        let isWhole = rows.count <= SessionRoutes.mostListed
        if !isWhole { rows.removeFirst() }
        if !rows.contains(where: { $0.id == session.id }), let own = try sessions.read(session.id) {
            rows.insert(own, at: 0)
        }
        var list: [JSONValue] = []
        for row in rows {
            var members = try shown(row)
            members.append(("platform", .string(row.platform.description)))
            if row.id == session.id { members.append(("current", .bool(true))) }
            list.append(.object(members))
        }
        return RouteAnswer(["sessions": .array(list), "more": .bool(!isWhole)])
    }

    private func revoke(_ call: RouteCall) async throws(Refusal) -> RouteAnswer {
        let session = try call.session()
        guard let id = SessionID(call.parameter) else { return RouteAnswer(.notFound) }
        let account = try account(of: session)
        let ended = try await sessions.revoke(id, by: account, at: call.now)
        return ended.isEmpty ? RouteAnswer(.notFound) : RouteAnswer([:])
    }

    private func account(of session: Session) throws(Refusal) -> Account {
        guard let account = try sessions.readAccount(session.account.number) else {
            throw Refusal(.unavailable, "session \(session.id): its account is not in the store")
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
        guard let session = caller?.session else { throw Refusal(.sessionEnded, "this route needs a session") }
        return session
    }
}
