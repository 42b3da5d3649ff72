import Countersign
import CountersignWire

extension Command {
    static let sessions = Command(
        words: ["sessions"], summary: "list your account's sessions, and end others",
        options: [
            ClientDesk.profileOption, .list("end", "ID", "end this one"),
            .flag("end-others", "end all but this machine's"),
            .json,
        ]
    ) { (run) throws(Fault) in
        let desk = try ClientDesk(run)
        var ended: [SessionID] = []
        for text in run.arguments.values("end") {
            guard let id = SessionID(text) else { throw Fault(.usage, "--end `\(text)`: expected a session's id") }
            ended.append(id)
        }
        if run.arguments.has("end") || run.arguments.has("end-others") {
            try end(ended, desk)
            // A listing has the newest only; those that it did not have are in the next one.
            while run.arguments.has("end-others"), case let others = try others(desk), !others.isEmpty {
                try end(others, desk)
                ended += others
            }
            try run.print(["ended": .strings(ended.map(\.description))]) {
                ended.isEmpty ? "there is no other" : ended.map { "ended \($0)" }.joined(separator: "\n")
            }
            return .success
        }
        let entries = try list(desk)
        try run.print(["sessions": .array(entries.map(\.json))]) {
            Table.text(
                ["SESSION", "DEVICE", "CLASS", "KEYS", "SINCE", "LAST USED", ""],
                entries.map { entry in
                    [
                        entry.id, entry.deviceName, entry.deviceKind, entry.keyStorage ?? "unknown",
                        Moment.text(entry.created), Moment.text(entry.used), entry.isCurrent ? "this one" : "",
                    ]
                })
        }
        return .success
    }

    private static func end(_ ids: [SessionID], _ desk: ClientDesk) throws(Fault) {
        try desk.perform { (client) throws(CountersignError) in
            for id in ids { try await client.endSession(id.description) }
        }
    }

    private static func others(_ desk: ClientDesk) throws(Fault) -> [SessionID] {
        try list(desk).filter { !$0.isCurrent }.compactMap { SessionID($0.id) }
    }

    private static func list(_ desk: ClientDesk) throws(Fault) -> [CountersignClient.Session] {
        try desk.perform { (client) throws(CountersignError) in try await client.sessions() }
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
