import CountersignAuthority
import CountersignWire

/// What a server says of itself: `INFO`, and `CONFIG GET` of the settings on which the replay guard depends.
package struct RedisServerStatus: Sendable, Equatable {
    package var identity: ReplayDataSet
    package var role: String
    /// Replicas that are connected.
    package var replicas: Int64
    /// Entries that the server has dropped to make room, since its start.
    package var evicted: Int64
    package var settings: [String: String]

    /// The sections of `INFO` that ``init(info:settings:)`` needs.
    static let sections = ["server", "replication", "stats"]
    /// The patterns of the settings that ``init(info:settings:)`` needs.
    static let patterns = ["maxmemory*", "min-replicas-*"]

    init(info: String, settings: [String: String]) throws(OperationalError) {
        var fields: [Substring: Substring] = [:]
        for line in info.split(whereSeparator: \.isNewline) {
            guard let colon = line.firstIndex(of: ":") else { continue }
            fields[line[..<colon]] = line[line.index(after: colon)...]
        }
        guard let run = fields["run_id"].map(String.init), ReplayDataSet.isID(run),
            let replication = fields["master_replid"].map(String.init), ReplayDataSet.isID(replication),
            let role = fields["role"].map(String.init),
            let replicas = fields["connected_slaves"].flatMap({ Int64($0) }),
            let evicted = fields["evicted_keys"].flatMap({ Int64($0) }), evicted >= 0
        else {
            throw OperationalError(
                .failed,
                message:
                    "INFO lacks run_id, master_replid, role, connected_slaves or evicted_keys; expected "
                    + "Redis 6.2 or later")
        }
        identity = ReplayDataSet(server: run, history: replication)
        self.role = role
        self.replicas = replicas
        self.evicted = evicted
        self.settings = settings
    }

    /// Refuses a server that may drop entries silently, or acknowledge a write that a failover loses
    /// unnoticed. `window` is in seconds.
    func check(window: Int64) throws(OperationalError) {
        guard role == "master" else {
            throw OperationalError(
                .unreachable, message: "its role is `\(RedisServerStatus.quotable(role))`; expected `master`")
        }
        if let memory = settings["maxmemory"], memory != "0" {
            try require("maxmemory-policy", expected: "noeviction") { $0 == "noeviction" }
        } else {
            try require("maxmemory", expected: "a number of bytes") { $0 == "0" }
        }
        guard replicas > 0 else { return }
        try require("min-replicas-to-write", expected: "1 or more, because a replica is connected") {
            (Int64($0) ?? 0) >= 1
        }
        try require(
            "min-replicas-max-lag",
            expected: "1 to \(window - 1) s, below the window, because a replica is connected"
        ) { (1..<max(window, 2)).contains(Int64($0) ?? 0) }
    }

    private func require(
        _ name: String, expected: String, isValid: (String) -> Bool
    ) throws(OperationalError) {
        guard let value = settings[name] else {
            throw OperationalError(
                .failed, message: "CONFIG GET does not return `\(name)`; expected \(expected)")
        }
        guard isValid(value) else {
            throw OperationalError(
                .failed, message: "`\(name)` is `\(RedisServerStatus.quotable(value))`; expected \(expected)")
        }
    }

    /// A server's text for messages: short and printable.
    static func quotable(_ text: String) -> String {
        String(
            text.unicodeScalars.prefix(120).map { $0.value >= 0x20 && $0.value < 0x7F ? Character($0) : "?" })
    }
}
