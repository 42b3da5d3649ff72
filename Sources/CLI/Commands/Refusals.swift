import CountersignGate
import CountersignServer
import CountersignWire

extension Command {
    static let refusals = Command(
        words: ["refusals"], summary: "show refused and failed requests, and the mistakes behind them",
        options: [
            .value(
                "id", placeholder: "EVENT",
                meaning: "this one alone: the `instance` of a response, or the `event` of a line of the log"),
            .value(
                "app", placeholder: "APP", meaning: "of requests that name this app, or come to its host"),
            .value("release", placeholder: "KEY_ID", meaning: "of requests that name this release"),
            .value("code", placeholder: "CODE", meaning: "that ended with this code"),
            .value("last", placeholder: "N", meaning: "list N at most, the latest ones (default: 50)"),
            .data, .json,
        ],
        notes: """
            Reads the requests that a running server, or an earlier one, has kept on the disk \
            (--limit-kept-refusal-bytes):
            those that have a line in the log. --id finds any of them at once. The other options search the \
            latest \(RefusalStore.mostRead) of
            callers with proof and the latest \(RefusalStore.mostRead) of others. An app or release that the \
            request did not prove is only
            claimed. A node has its own requests alone.
            """
    ) { (run) throws(OperationalError) in
        let refusals = try run.recentRefusals()
        if let event = run.arguments.value("id") {
            for name in ["app", "release", "code", "last"] where run.arguments.has(name) {
                throw OperationalError(
                    .usage, message: "--\(name): expected no other option beside --id, which finds one event")
            }
            guard let refusal = refusals.refusal(of: event) else {
                throw OperationalError(
                    .missing, message: "event \(event): no such refusal is stored; the log may have it")
            }
            try run.print(refusal.json) { refusal.text }
            return .success
        }
        let most = try run.number("last", in: 1...500) ?? 50
        let filter = RefusalFilter(
            app: run.arguments.value("app"), release: run.arguments.value("release"),
            code: run.arguments.value("code"))
        let report = refusals.report(of: filter, atMost: most)
        let since = refusals.store?.oldest
        try run.print(report.json(since: since)) { report.text }
        run.console.note("note: \(RefusalReport.extent(since: since))")
        return .success
    }
}

extension Invocation {
    /// Those of the server in which the command runs, or those that the data folder has.
    fileprivate func recentRefusals() throws(OperationalError) -> RecentRefusals {
        if let kept = host?.refusals { return kept }
        let folder = try dataFolder()
        guard let store = try RefusalStore(reading: folder) else {
            throw OperationalError(
                .failed,
                message: "\(folder): no refusals are kept here; expected the data folder of a gateway that "
                    + "has run, with room by --limit-kept-refusal-bytes")
        }
        return RecentRefusals(store: store)
    }
}

extension RecentRefusal {
    /// The line of the log; nil if it is not JSON.
    private var document: JSONDocument? { try? JSONReader.read(line) }

    fileprivate var json: JSONValue {
        var (isExplained, notes) = (false, [String]())
        if case .made(_, let found) = search { (isExplained, notes) = (true, found) }
        let cause = cause.map { cause -> JSONValue in
            [
                "code": .string(cause.code), "sentence": .string(cause.sentence),
                "remedy": .string(cause.remedy),
            ]
        }
        return [
            "event": .string(event), "code": .string(code), "time": .integer(time), "app": .optional(app),
            "release": .optional(named?.release), "cause": cause ?? .null, "searched": .bool(isExplained),
            "notes": .strings(notes),
            "line": document.map { JSONValue($0.root, of: $0) } ?? .object([]),
        ]
    }

    fileprivate var text: String {
        var rows = [("event", event), ("code", code)]
        if let app { rows.append(("app", app)) }
        if let named { rows.append(("release", named.release)) }
        if let detail = document?.root["detail"]?.string { rows.append(("detail", detail)) }
        if let cause {
            rows += [("mistake", cause.code), ("what happened", cause.sentence), ("remedy", cause.remedy)]
        }
        switch search {
        case .made(let cause, let notes):
            rows += notes.map { ("not met", $0) }
            if cause == nil { rows.append(("mistake", "none of the usual ones explains it")) }
        case .notMade: rows.append(("mistake", "none was looked for"))
        }
        rows.append(("line", String(decoding: line, as: UTF8.self)))
        return rows.map { "\($0.0): \(AuditLine.harmless($0.1))" }.joined(separator: "\n")
    }

    fileprivate var cells: [String] {
        let root = document?.root
        func text(_ name: String) -> String? { root?[name]?.string }
        let request = [text("method"), text("path")].compactMap(\.self).joined(separator: " ")
        return [
            TimeText.text(time), code, app ?? "-", named?.release ?? "-", request.isEmpty ? "-" : request,
            text("client") ?? text("peer") ?? "-", cause?.code ?? "-", event,
        ].map(AuditLine.harmless)
    }

    fileprivate static let head = [
        "TIME", "CODE", "APP", "RELEASE", "REQUEST", "CLIENT", "MISTAKE", "EVENT",
    ]
}

extension RefusalReport {
    fileprivate func json(since: (proven: Int64?, unproven: Int64?)?) -> JSONValue {
        [
            "refusals": .array(refusals.map(\.json)),
            "causes": .array(
                causes.sorted { $0.key < $1.key }.map { code, cause in
                    [
                        "code": .string(code), "count": .integer(Int64(cause.count)),
                        "explained": .integer(Int64(cause.explained)), "latest": .integer(cause.latest),
                    ]
                }),
            "kept_since": since.map { since in
                [
                    "proven": since.proven.map { .integer($0) } ?? .null,
                    "unproven": since.unproven.map { .integer($0) } ?? .null,
                ]
            } ?? .null,
        ]
    }

    fileprivate var text: String {
        guard !refusals.isEmpty else { return "no refusals" }
        let counts = causes.sorted { ($1.value.count, $0.key) < ($0.value.count, $1.key) }
            .map { "\($0.value.count) \($0.key)" }.joined(separator: ", ")
        return Table.text(head: RecentRefusal.head, rows: refusals.map(\.cells)) + "\n" + counts
    }

    /// States since when refusals are kept on the disk.
    static func extent(since: (proven: Int64?, unproven: Int64?)?) -> String {
        guard let since else {
            return "Refusals are only in memory. After a restart, only the log has them."
        }
        func text(_ time: Int64?) -> String { time.map(TimeText.text) ?? "now" }
        return "The search by event id covers all refusals on the disk: those of callers with proof since "
            + "\(text(since.proven)), and others since \(text(since.unproven)). The lists cover the "
            + "latest \(RefusalStore.mostRead) of each kind."
    }
}
