import CountersignAuthority
import CountersignHandshake
import CountersignGate
import CountersignSeal
import CountersignWire

extension Command {
    static let sessionList = Command(
        words: ["session", "list"], summary: "list the sessions of an app, or of one account",
        positionals: [Positional(name: "APP"), Positional(name: "NAME", presence: .optional)],
        options: [
            .flag(
                "ended", meaning: "list ended and expired sessions, too, for as long as they are kept"),
            .value(
                "limit", placeholder: "N", meaning: "at most so many of an app, 1 to 100000 (default: 1000)"),
            .data, .json,
        ],
        notes: """
            A session whose row was altered in the database is refused, and listed as `altered`; with --json \
            it has the
            members `session`, `account` and `altered`.
            """
    ) { (run) throws(OperationalError) in
        let app = try run.appName()
        let limit = try run.number("limit", in: 1...100_000) ?? 1000
        let deployment = try run.deployment()
        let policy = try deployment.app(app).policy()
        var names: [Int64: AccountName] = [:]
        var sessions: [ListedRow<StoredSession>]
        if let text = run.arguments.positional("NAME") {
            let account = try deployment.account(try Invocation.accountName(text), of: app)
            names[account.number] = account.name
            sessions = try deployment.store.sessions(of: account.number).map { .row($0) }
            sessions += try deployment.store.alteredRows(of: account.number)
                .filter { $0.table == AuthenticatedTable.session.name }.map { .altered($0) }
        } else {
            sessions = try deployment.store.sessionListing(of: app, limit: limit)
        }
        if !run.arguments.has("ended") {
            sessions.removeAll { $0.row.map { !$0.isLive(by: policy, at: run.now) } ?? false }
        }
        for number in Set(sessions.map(\.account)) where names[number] == nil {
            names[number] = try deployment.store.listing(ofAccount: number)?.row?.name
        }
        let rows = sessions.map {
            (session: $0, account: names[$0.account]?.description ?? "number \($0.account)")
        }
        try run.print([
            "app": .string(app.description),
            "sessions": .array(rows.map { $0.session.json(of: $0.account, by: policy) }),
        ]) {
            if rows.isEmpty { return "no sessions" }
            return Table.text(
                head: [
                    "SESSION", "ACCOUNT", "DEVICE", "CLASS", "PLATFORM", "KIND", "KEYS", "SINCE", "LAST USED",
                    "STATE",
                ],
                rows: rows.map { $0.session.cells(of: $0.account, by: policy, at: run.now) })
        }
        run.warn(of: sessions.compactMap(\.altered))
        return .success
    }

    static let sessionRevoke = Command(
        words: ["session", "revoke"], summary: "end a session, and forget its device",
        positionals: [Positional(name: "ID")],
        options: [
            .flag("keep-device", meaning: "the device stays known to the account, as after a sign-out"),
            .data,
            .json,
        ],
        notes: """
            A running server refuses it from the next request on. Status 1 where there is no such session.

            A known device has guesses at the password of its own, which count against no other limit. After \
            this, the device of the session
            has none, until it signs in again; also where the session had ended before. Without a session,
            `countersign account forget-device` does the same.
            """
    ) { (run) throws(OperationalError) in
        let text = try run.required("ID")
        guard let id = SessionID(text) else {
            throw OperationalError(
                .usage, message: "ID `\(text)`: expected a session's id, as `countersign session list` has it"
            )
        }
        let device: RevokedDevice = run.arguments.has("keep-device") ? .kept : .forgotten
        let outcome = try run.deployment().revokeSession(id, device: device, at: run.now)
        let json: JSONValue = [
            "session": .string(id.description), "revoked": .bool(outcome.didEnd),
            "forgot_device": .bool(outcome.didForgetDevice),
        ]
        try run.print(json) {
            (outcome.didEnd ? "revoked \(id)" : "\(id) had ended before")
                + (outcome.didForgetDevice ? "; its device is forgotten" : "")
        }
        return .success
    }
}

extension ListedRow<StoredSession> {
    fileprivate var account: Int64 {
        switch self {
        case .row(let session): session.account
        case .altered(let row): row.account
        }
    }

    fileprivate func json(of account: String, by policy: Policy) -> JSONValue {
        switch self {
        case .row(let session): session.json(of: account, by: policy)
        case .altered(let row):
            ["session": .string(row.row), "account": .string(account), "altered": true]
        }
    }

    fileprivate func cells(of account: String, by policy: Policy, at now: Int64) -> [String] {
        switch self {
        case .row(let session): session.cells(of: account, by: policy, at: now)
        case .altered(let row):
            [row.row, account] + [String](repeating: "-", count: 7) + ["altered"]
        }
    }
}

extension StoredSession {
    private var kind: String {
        switch credentials {
        case .device: "device"
        case .bearer: "bearer"
        }
    }

    /// Where the device says that it keeps its keys; sessions of tokens have none.
    private var keys: String {
        switch credentials {
        case .device: keyStorage?.rawValue ?? "unknown"
        case .bearer: "none"
        }
    }

    /// When it ends unless it is renewed, in whole Unix seconds.
    private func idleEnd(by policy: Policy) -> Int64 { policy.sessionEnd(used: used, created: created) }

    fileprivate func isLive(by policy: Policy, at now: Int64) -> Bool {
        end == nil && idleEnd(by: policy) > now
    }

    fileprivate func json(of account: String, by policy: Policy) -> JSONValue {
        guard case .object(let members) = json(of: account) else { return .null }
        return .object(members + [("idle", .integer(idleEnd(by: policy)))])
    }

    func json(of account: String) -> JSONValue {
        [
            "session": .string(id.description), "account": .string(account),
            "platform": .string(platform.description),
            "kind": .string(kind),
            "device": ["class": .string(deviceClass.rawValue), "name": .string(deviceName)],
            "key_storage": .optional(keyStorage?.rawValue), "created": .integer(created),
            "used": .integer(used), "ended": .optional(end?.reason.rawValue),
            "ended_at": end.map { .integer($0.at) } ?? .null, "ended_by": .optional(end?.by),
        ]
    }

    fileprivate func cells(of account: String, by policy: Policy, at now: Int64) -> [String] {
        let idle = idleEnd(by: policy)
        return [
            id.description, account, deviceName, deviceClass.rawValue, platform.description, kind,
            keys, TimeText.text(created), TimeText.text(used),
            end.map { "\($0.reason.rawValue) \(TimeText.text($0.at))" }
                ?? (idle > now ? "live" : "expired \(TimeText.text(idle))"),
        ]
    }
}
