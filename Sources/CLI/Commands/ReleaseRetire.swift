import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignWire

extension Command {
    static let releaseRetire = Command(
        words: ["release", "retire"],
        summary: "send a version's callers to its successor, at once or step by step",
        positionals: [Positional(name: "KEY_ID")],
        options: [
            .value("at", placeholder: "TIME", meaning: "from when on it is refused: \(TimeText.expected)"),
            .value("update-url", placeholder: "URL", meaning: "where the new version is"),
            .value("warn-at", placeholder: "TIME", meaning: "from when on its answers say that it will go"),
            .value("read-only-at", placeholder: "TIME", meaning: "from when on it may only GET and HEAD"),
            .value(
                "percent", placeholder: "N[@TIME],…",
                meaning: "reach so many of a hundred devices, from that time on (default: all, at once)"
            ),
            .flag("undo", meaning: "admit the version again, at once and for all callers"),
        ] + Option.cutOff + [.data, .json],
        notes: """
            Responses to warned callers, also the backend's, have Countersign-Update with the date and the
            link. Refused callers receive update-required (426, for form-md5 -99) with the link. --percent
            10@TIME,50@TIME,100@TIME reaches no caller before the first time. A session that a share reaches
            stays reached as the share grows; a caller without a session is counted by its network.
            `countersign release impact KEY_ID` shows the callers that would be cut off. Where a stage begins
            at once, the command asks at a terminal.
            """
    ) { (run) throws(OperationalError) in
        let id = try run.keyID(run.required("KEY_ID"), at: "KEY_ID")
        if run.arguments.has("undo") { return try undo(id, run: run) }
        var retirement = AppRelease.Retirement(
            at: try time(run.requiredOption("at"), option: "at", run: run),
            updateURL: try run.requiredOption("update-url"))
        guard isLink(retirement.updateURL) else {
            throw OperationalError(.usage, message: "--update-url: expected an https:// or app-store URL")
        }
        retirement.warnAt = try run.arguments.value("warn-at").map { (text) throws(OperationalError) in
            try time(text, option: "warn-at", run: run)
        }
        retirement.readOnlyAt = try run.arguments.value("read-only-at").map {
            (text) throws(OperationalError) in
            try time(text, option: "read-only-at", run: run)
        }
        if let text = run.arguments.value("percent") { retirement.rollout = try rollout(text, run: run) }
        let deployment = try run.deployment()
        let isDry = run.arguments.has("dry-run")
        let isAtOnce = retirement.refusesCallers(at: run.now)
        let cutOff = try CutOff(
            isAtOnce || isDry ? [try deployment.release(id)] : [], in: deployment, at: run.now)
        if isAtOnce || isDry {
            guard try run.isToCutOff(cutOff, by: "release retire \(id)") else { return .success }
        }
        try deployment.retire(id, with: retirement)
        let told = retirement.auditDetails.filter { $0.name != "at" }
        try run.print(
            .object(
                [("key_id", .string(id.description)), ("retired_at", .integer(retirement.at))] + told
                    + [("cut_off", cutOff.json)])
        ) {
            RetirementText(retirement, now: run.now).sentence(of: id)
        }
        return .success
    }

    private static func undo(_ id: KeyID, run: Invocation) throws(OperationalError) -> ExitStatus {
        for name in ["at", "update-url", "warn-at", "read-only-at", "percent"] where run.arguments.has(name) {
            throw OperationalError(.usage, message: "--undo and --\(name): expected one or the other")
        }
        try run.deployment().undoRetirement(of: id)
        try run.print(["key_id": .string(id.description), "retired_at": .null]) { "\(id) is live" }
        return .success
    }

    private static func time(_ text: String, option: String, run: Invocation) throws(OperationalError)
        -> Int64
    {
        try TimeText.parse(text, option: option, now: run.now)
    }

    /// `10@TIME,50@TIME`; the first may go without a time.
    private static func rollout(_ text: String, run: Invocation) throws(OperationalError) -> [AppRelease
        .RolloutStep]
    {
        var steps: [AppRelease.RolloutStep] = []
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            let pieces = part.split(separator: "@", maxSplits: 1, omittingEmptySubsequences: false)
            let digits = pieces[0].utf8
            guard (1...3).contains(digits.count), digits.allSatisfy(ASCII.isDigit),
                let percent = Int(pieces[0]),
                percent <= 100
            else {
                throw OperationalError(
                    .usage,
                    message: "--percent `\(part)`: expected N or N@TIME, N a whole number from 0 to 100")
            }
            guard pieces.count == 2 || steps.isEmpty else {
                throw OperationalError(
                    .usage,
                    message:
                        "--percent `\(part)`: only the first goes without a time; expected \(percent)@TIME")
            }
            let since = pieces.count == 2 ? try time(String(pieces[1]), option: "percent", run: run) : 0
            steps.append(AppRelease.RolloutStep(since: since, percent: percent))
        }
        return steps
    }

    /// `scheme:something`, visible ASCII: market links have schemes of their own (`itms-apps:`, `market:`).
    private static func isLink(_ text: String) -> Bool {
        let parts = text.utf8.split(separator: UInt8(ascii: ":"), maxSplits: 1)
        return text.utf8.count <= 2048 && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F } && parts.count == 2
            && parts[0].allSatisfy {
                ASCII.isLetter($0) || ASCII.isDigit($0) || [0x2B, 0x2D, 0x2E].contains($0)
            }
            && parts[0].first.map { ASCII.isLetter($0) } == true
            && !["javascript", "data"].contains(String(text.prefix { $0 != ":" }).lowercased())
    }
}

extension AppRelease.Retirement {
    /// Whether the retirement refuses callers at `now`: all, or those that change something.
    fileprivate func refusesCallers(at now: Int64) -> Bool {
        percent(at: now) > 0 && [.retired, .readOnly].contains(stage(at: now))
    }
}

/// A retirement in words.
struct RetirementText {
    private let retirement: AppRelease.Retirement
    private let now: Int64

    init(_ retirement: AppRelease.Retirement, now: Int64) {
        self.retirement = retirement
        self.now = now
    }

    /// For a table's cell: the stage, and for how many.
    var state: String {
        let percent = retirement.percent(at: now)
        let share = percent == 100 ? "" : " for \(percent)%"
        switch retirement.stage(at: now) {
        case .live: return "until \(TimeText.text(retirement.at))"
        case .warn: return "warned\(share), until \(TimeText.text(retirement.at))"
        case .readOnly: return "read-only\(share), until \(TimeText.text(retirement.at))"
        case .retired: return "retired\(share)"
        }
    }

    func sentence(of id: KeyID) -> String {
        var text =
            "\(id) is \(retirement.at <= now ? "retired" : "retired from \(TimeText.text(retirement.at)) on")"
        if retirement.at > now {
            if let warnAt = retirement.warnAt { text += ", warned \(from(warnAt))" }
            if let readOnlyAt = retirement.readOnlyAt { text += ", read-only \(from(readOnlyAt))" }
        }
        guard let last = retirement.rollout.last else { return text }
        let steps = retirement.rollout.map { step in
            "\(step.percent)% of devices" + (step.since > now ? " from \(TimeText.text(step.since)) on" : "")
        }
        text += "; this reaches " + steps.joined(separator: ", ")
        if last.percent < 100 { text += ", and \(100 - last.percent)% never" }
        return text
    }

    private func from(_ time: Int64) -> String { time <= now ? "now" : "from \(TimeText.text(time)) on" }
}
