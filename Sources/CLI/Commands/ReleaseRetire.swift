import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignWire

extension Command {
    static let releaseRetire = Command(
        words: ["release", "retire"], summary: "send a version's callers to its successor, at once or step by step",
        positionals: [Positional(name: "KEY_ID")],
        options: [
            .value("at", "TIME", "from when on it is refused: \(Moment.expected)"),
            .value("update-url", "URL", "where the new version is"),
            .value("warn-at", "TIME", "from when on its answers say that it will go"),
            .value("read-only-at", "TIME", "from when on it may only GET and HEAD"),
            .value(
                "percent", "N[@TIME],…", "reach so many of a hundred devices, from that time on (default: all, at once)"
            ),
            .flag("undo", "let it in again, at once and for everybody"), .data, .json,
        ],
        notes: """
            Answers to callers that are warned, the backend's too, bear Countersign-Update with the date and the link. Refused
            callers get update-required (426, to form-md5 -99) with the link. --percent 10@TIME,50@TIME,100@TIME reaches nobody
            before the first time; a session stays on its side as the share grows, a caller without one goes by its network.
            `countersign release impact KEY_ID` says who would be cut off.
            """
    ) { (run) throws(Fault) in
        let id = try run.keyID(run.required("KEY_ID"), at: "KEY_ID")
        if run.arguments.has("undo") { return try undo(id, run) }
        var retirement = ReleaseKey.Retirement(
            at: try moment(run.requiredOption("at"), of: "at", run), updateURL: try run.requiredOption("update-url"))
        guard isLink(retirement.updateURL) else {
            throw Fault(.usage, "--update-url: expected an https:// or app-store URL")
        }
        retirement.warnAt = try run.arguments.value("warn-at").map { (text) throws(Fault) in
            try moment(text, of: "warn-at", run)
        }
        retirement.readOnlyAt = try run.arguments.value("read-only-at").map { (text) throws(Fault) in
            try moment(text, of: "read-only-at", run)
        }
        if let text = run.arguments.value("percent") { retirement.rollout = try rollout(text, run) }
        try run.deployment().retire(id, retirement)
        let told = retirement.told.filter { $0.name != "at" }
        try run.print(
            .object([("key_id", .string(id.description)), ("retired_at", .integer(retirement.at))] + told)
        ) {
            RetirementText(retirement, now: run.now).sentence(of: id)
        }
        return .success
    }

    private static func undo(_ id: KeyID, _ run: Invocation) throws(Fault) -> ExitStatus {
        for name in ["at", "update-url", "warn-at", "read-only-at", "percent"] where run.arguments.has(name) {
            throw Fault(.usage, "--undo and --\(name): expected one or the other")
        }
        try run.deployment().undoRetirement(of: id)
        try run.print(["key_id": .string(id.description), "retired_at": .null]) { "\(id) is live" }
        return .success
    }

    private static func moment(_ text: String, of option: String, _ run: Invocation) throws(Fault) -> Int64 {
        try Moment.given(text, as: option, now: run.now)
    }

    /// `10@TIME,50@TIME`; the first may go without a time.
    private static func rollout(_ text: String, _ run: Invocation) throws(Fault) -> [ReleaseKey.RolloutStep] {
        var steps: [ReleaseKey.RolloutStep] = []
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            let pieces = part.split(separator: "@", maxSplits: 1, omittingEmptySubsequences: false)
            let digits = pieces[0].utf8
            guard (1...3).contains(digits.count), digits.allSatisfy(ASCII.isDigit), let percent = Int(pieces[0]),
                percent <= 100
            else {
                throw Fault(.usage, "--percent `\(part)`: expected N or N@TIME, N a whole number from 0 to 100")
            }
            guard pieces.count == 2 || steps.isEmpty else {
                throw Fault(.usage, "--percent `\(part)`: only the first goes without a time; expected \(percent)@TIME")
            }
            let since = pieces.count == 2 ? try moment(String(pieces[1]), of: "percent", run) : 0
            steps.append(ReleaseKey.RolloutStep(since: since, percent: percent))
        }
        return steps
    }

    /// `scheme:something`, visible ASCII: market links have schemes of their own (`itms-apps:`, `market:`).
    private static func isLink(_ text: String) -> Bool {
        let parts = text.utf8.split(separator: UInt8(ascii: ":"), maxSplits: 1)
        return text.utf8.count <= 2048 && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F } && parts.count == 2
            && parts[0].allSatisfy { ASCII.isLetter($0) || ASCII.isDigit($0) || [0x2B, 0x2D, 0x2E].contains($0) }
            && parts[0].first.map { ASCII.isLetter($0) } == true
            && !["javascript", "data"].contains(String(text.prefix { $0 != ":" }).lowercased())
    }
}
