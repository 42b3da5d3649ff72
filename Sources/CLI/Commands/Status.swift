import Countersign
import CountersignClient
import CountersignHandshake
import CountersignSeal
import CountersignWire

extension Command {
    static let status = Command(
        words: ["status"], summary: "show the account that is signed in on this machine",
        options: [ProfileSession.profileOption, .flag("offline", meaning: "do not ask the server"), .json],
        notes: """
            Exit status 0 if an account is signed in; 1 if none is, or if the server says that the session
            has ended. If the server cannot be reached, the command prints the stored state.
            """
    ) { (run) throws(OperationalError) in
        let session = try ProfileSession(run)
        let kept = try session.state()
        guard let login = kept.login else {
            // What this device alone knows: the server lists the session still.
            let isLost = kept.ended?.reason == SessionEndRecord.deviceKeyLost
            return try showSignedOut(run, session: session, ended: isLost ? kept.ended : nil)
        }
        var current: AccountSessions.Current?
        var doubt: String?
        if !run.arguments.has("offline") {
            switch try checkServer(session) {
            case .seen(let session): current = session
            case .ended(let ending): return try showSignedOut(run, session: session, ended: ending)
            case .notReached(let reason): doubt = reason
            }
        }
        // Asking may have renewed the token.
        let now = try session.state()
        try showSignedIn(run, session: session, login: now.login ?? login, state: now, current: current)
        if let doubt { run.console.note("note: as far as is known here; \(doubt)") }
        return .success
    }

    /// What asking the server came to.
    private enum ServerCheck: Sendable {
        case seen(AccountSessions.Current)
        case ended(SessionEndRecord?)
        case notReached(String)
    }

    private static func checkServer(_ session: ProfileSession) throws(OperationalError) -> ServerCheck {
        let (name, origin) = (session.name, session.origin)
        return try session.perform { (client) throws(CountersignError) in
            do throws(CountersignError) {
                return .seen(try await client.current())
            } catch {
                switch error {
                case .signedOut: return .ended(try await client.kept().ended)
                case .vaultLocked, .vaultFailed: throw error
                default:
                    return .notReached(
                        ProfileSession.operationalError(for: error, profile: name, origin: origin).message)
                }
            }
        }
    }

    private static func showSignedOut(
        _ run: Invocation, session: ProfileSession, ended: SessionEndRecord?
    )
        throws(OperationalError) -> ExitStatus
    {
        let json: JSONValue = [
            "profile": .string(session.name), "signed_in": false, "reason": .optional(ended?.reason),
            "at": ended?.at.map { .integer($0) } ?? .null, "by": .optional(ended?.by),
            "vault": .string(session.profile.vault.rawValue),
        ]
        try run.print(json) {
            guard let ended else { return "no account is signed in" }
            let reason = ProfileSession.reason(SessionEnd(ended))
            return "no account is signed in: the session has ended: \(reason)"
        }
        return .failed
    }

    private static func showSignedIn(
        _ run: Invocation, session: ProfileSession, login: ActiveLogin,
        state: PersistedState, current: AccountSessions.Current?
    ) throws(OperationalError) {
        let clockOffset = state.clockOffset
        var members = login.members(profile: session.name, keys: state.keys)
        members += [
            ("url", .string(session.profile.url)), ("clock_offset", .integer(clockOffset)),
            ("vault", .string(session.profile.vault.rawValue)),
        ]
        members.append(("server", current.map { $0.json } ?? .null))
        try run.print(.object(members)) {
            var rows = [
                ("signed in as", login.account.description), ("at", session.profile.url),
                ("on", "\(login.deviceName) (\(login.deviceClass.rawValue))"),
                ("session", login.id.description),
                ("token until", TimeText.text(current?.expires ?? login.expires)),
                ("idle until", TimeText.text(current?.idle ?? login.idle)),
                ("kept in", session.profile.vault.rawValue),
            ]
            if case .device = login.session, let storage = state.keys?.storage {
                rows.append(("device keys", storage.rawValue))
            }
            if case .bearer = login.session {
                rows.append(("kind", "bearer: its token suffices to use it"))
            }
            if clockOffset != 0 { rows.append(("clock", "\(clockOffset) s behind the server's")) }
            return rows.map { "\($0.0):\(String(repeating: " ", count: 13 - $0.0.count)) \($0.1)" }.joined(
                separator: "\n")
        }
    }
}

extension AccountSessions.Current {
    fileprivate var json: JSONValue {
        [
            "account": .string(account), "session": .string(entry.id.description),
            "created": .integer(entry.created),
            "used": .integer(entry.used), "expires": .integer(expires), "idle": .integer(idle),
        ]
    }
}

extension Command {
    static let sessions = Command(
        words: ["sessions"], summary: "list your account's sessions, and end others",
        options: [
            ProfileSession.profileOption, .list("end", placeholder: "ID", meaning: "end this one"),
            .flag("end-others", meaning: "end all but this machine's"),
            .json,
        ]
    ) { (run) throws(OperationalError) in
        let session = try ProfileSession(run)
        var ended: [SessionID] = []
        for text in run.arguments.values("end") {
            guard let id = SessionID(text) else {
                throw OperationalError(.usage, message: "--end `\(text)`: expected a session's id")
            }
            ended.append(id)
        }
        if run.arguments.has("end") || run.arguments.has("end-others") {
            try end(ended, session: session)
            // A listing has the newest only; those that it did not have are in the next one.
            while run.arguments.has("end-others"), case let others = try others(session), !others.isEmpty {
                try end(others, session: session)
                ended += others
            }
            try run.print(["ended": .strings(ended.map(\.description))]) {
                ended.isEmpty ? "there is no other" : ended.map { "ended \($0)" }.joined(separator: "\n")
            }
            return .success
        }
        let entries = try list(session)
        try run.print(["sessions": .array(entries.map(\.json))]) {
            Table.text(
                head: ["SESSION", "DEVICE", "CLASS", "KEYS", "SINCE", "LAST USED", ""],
                rows: entries.map { entry in
                    [
                        entry.id, entry.deviceName, entry.deviceKind, entry.keyStorage ?? "unknown",
                        TimeText.text(entry.created), TimeText.text(entry.used),
                        entry.isCurrent ? "this one" : "",
                    ]
                })
        }
        return .success
    }

    private static func end(_ ids: [SessionID], session: ProfileSession) throws(OperationalError) {
        try session.perform { (client) throws(CountersignError) in
            for id in ids { try await client.endSession(id.description) }
        }
    }

    private static func others(_ session: ProfileSession) throws(OperationalError) -> [SessionID] {
        try list(session).filter { !$0.isCurrent }.compactMap { SessionID($0.id) }
    }

    private static func list(
        _ session: ProfileSession
    ) throws(OperationalError) -> [CountersignClient.Session] {
        try session.perform { (client) throws(CountersignError) in try await client.sessions() }
    }
}

extension CountersignClient.Session {
    fileprivate var json: JSONValue {
        [
            "session": .string(id), "device": ["class": .string(deviceKind), "name": .string(deviceName)],
            "key_storage": .optional(keyStorage),
            "created": .integer(created), "used": .integer(used), "current": .bool(isCurrent),
        ]
    }
}
