import Countersign
import CountersignClient
import CountersignHandshake
import CountersignSeal
import CountersignWire

extension Command {
    static let status = Command(
        words: ["status"], summary: "tell who is signed in on this machine",
        options: [ClientDesk.profileOption, .flag("offline", "do not ask the server"), .json],
        notes: """
            Status 0 where somebody is signed in, 1 where nobody is, or where the server says that the session has ended. Where the
            server cannot be reached, what is known here is told all the same.
            """
    ) { (run) throws(Fault) in
        let desk = try ClientDesk(run)
        let kept = try desk.perform { (client) throws(CountersignError) in try await client.kept() }
        guard let login = kept.login else {
            // What this device alone knows: the server lists the session still.
            let isLost = kept.ended?.reason == Ending.deviceKeyLost
            return try tellNobody(run, desk, ended: isLost ? kept.ended : nil)
        }
        var current: AccountSessions.Current?
        var doubt: String?
        if !run.arguments.has("offline") {
            switch try look(desk) {
            case .seen(let session): current = session
            case .ended(let ending): return try tellNobody(run, desk, ended: ending)
            case .notReached(let reason): doubt = reason
            }
        }
        // Asking may have renewed the token.
        let now = try desk.perform { (client) throws(CountersignError) in try await client.kept() }
        try tell(run, desk, now.login ?? login, now, current)
        if let doubt { run.console.note("note: as far as is known here; \(doubt)") }
        return .success
    }

    /// What asking the server came to.
    private enum Look: Sendable {
        case seen(AccountSessions.Current)
        case ended(Ending?)
        case notReached(String)
    }

    private static func look(_ desk: ClientDesk) throws(Fault) -> Look {
        let (name, origin) = (desk.name, desk.origin)
        return try desk.perform { (client) throws(CountersignError) in
            do throws(CountersignError) {
                return .seen(try await client.current())
            } catch {
                switch error {
                case .signedOut: return .ended(try await client.kept().ended)
                case .vaultLocked, .vaultFailed: throw error
                default: return .notReached(ClientDesk.fault(error, name, origin).message)
                }
            }
        }
    }

    private static func tellNobody(_ run: Invocation, _ desk: ClientDesk, ended: Ending?) throws(Fault) -> ExitStatus {
        let json: JSONValue = [
            "profile": .string(desk.name), "signed_in": false, "reason": .optional(ended?.reason),
            "at": ended?.at.map { .integer($0) } ?? .null, "by": .optional(ended?.by), "vault": .string(desk.backEnd),
        ]
        try run.print(json) {
            guard let ended else { return "nobody is signed in" }
            return "nobody is signed in: the session has ended: \(ClientDesk.reason(SessionEnd(ended)))"
        }
        return .failed
    }

    private static func tell(
        _ run: Invocation, _ desk: ClientDesk, _ login: SignedIn,
        _ state: PersistedState, _ current: AccountSessions.Current?
    ) throws(Fault) {
        let clockOffset = state.clockOffset
        var members = login.members(desk.name, state.keys)
        members += [
            ("url", .string(desk.profile.url)), ("clock_offset", .integer(clockOffset)),
            ("vault", .string(desk.backEnd)),
        ]
        members.append(("server", current.map { $0.json } ?? .null))
        try run.print(.object(members)) {
            var rows = [
                ("signed in as", login.account.description), ("at", desk.profile.url),
                ("on", "\(login.deviceName) (\(login.deviceClass.rawValue))"), ("session", login.id.description),
                ("token until", Moment.text(current?.expires ?? login.expires)),
                ("idle until", Moment.text(current?.idle ?? login.idle)), ("kept in", desk.backEnd),
            ]
            if case .device = login.session, let storage = state.keys?.storage {
                rows.append(("device keys", storage.rawValue))
            }
            if case .bearer = login.session { rows.append(("kind", "bearer: whoever reads its token has it")) }
            if clockOffset != 0 { rows.append(("clock", "\(clockOffset) s behind the server's")) }
            return rows.map { "\($0.0):\(String(repeating: " ", count: 13 - $0.0.count)) \($0.1)" }.joined(
                separator: "\n")
        }
    }
}

extension AccountSessions.Current {
    fileprivate var json: JSONValue {
        [
            "account": .string(account), "session": .string(entry.id.description), "created": .integer(entry.created),
            "used": .integer(entry.used), "expires": .integer(expires), "idle": .integer(idle),
        ]
    }
}
