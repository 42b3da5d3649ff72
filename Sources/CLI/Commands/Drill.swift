import CountersignServer
import CountersignWire

extension Command {
    static let drillStore = drill(
        .store, summary: "show what a running server does while its store is away",
        notes: """
            The server then refuses what needs the store with 503, as if the database or the file could not be
            reached; requests that it can judge from its memory go on, over PostgreSQL for as long as
            --outage allows. Nothing is changed in the store. The log of keyed requests beside an SQLite store
            goes on.
            """)
    static let drillReplay = drill(
        .replay, summary: "show what a running server does while its replay guard is away",
        notes: """
            The server then refuses each request that the guard would have to remember with 503, as if Redis
            could not be reached or the replay file could not be used. Nothing is changed in the guard.
            """)

    private static func drill(_ subject: DrillSubject, summary: String, notes: String) -> Command {
        Command(
            words: ["drill", subject.rawValue], summary: summary,
            options: [
                .value("for", placeholder: "SECONDS", meaning: "how long, 1s to 60s (default 10s)"),
                .flag("yes", meaning: "requests of clients may be refused for that time"),
                .value(
                    "admin", placeholder: "HOST:PORT",
                    meaning: "the server's admin listener, on this machine (default 127.0.0.1:8444)"),
                .data, .json,
            ],
            notes: notes + """


                The drill ends by itself, with Ctrl-C, and at most 1.5 s after this command is gone. `/ready`,
                the metric `countersign_drill` and the log show it. The command reports what it saw, and fails
                if the server was not ready again within 30 s. It needs DATA/admin-token, and asks before it
                begins; without a terminal, --yes is needed.
                """
        ) { (run) throws(OperationalError) in
            let milliseconds = try run.drillMilliseconds()
            let drill = try DrillRun(subject, milliseconds: milliseconds, of: run.drilledConfiguration())
            try run.confirmDrill(of: subject, milliseconds: milliseconds)
            let report = try drill.run()
            try run.print(report.json) { report.text }
            return report.readyAfter == nil ? .failed : .success
        }
    }
}

extension Invocation {
    fileprivate func drillMilliseconds() throws(OperationalError) -> Int64 {
        let text = arguments.value("for") ?? "10s"
        guard text.hasSuffix("s"), let seconds = Int64(text.dropLast()), (1...60).contains(seconds),
            String(seconds) == text.dropLast()
        else { throw OperationalError(.usage, message: "--for `\(text)`: expected 1s to 60s") }
        return seconds * 1_000
    }

    fileprivate func drilledConfiguration() throws(OperationalError) -> Configuration {
        var configuration = try configuration()
        if let text = arguments.value("admin") {
            guard let address = HostPort(text) else {
                throw OperationalError(.usage, message: "--admin `\(text)`: expected HOST:PORT")
            }
            configuration.admin = address
        }
        return configuration
    }

    fileprivate func confirmDrill(of subject: DrillSubject, milliseconds: Int64) throws(OperationalError) {
        guard !arguments.has("yes") else { return }
        let prompt =
            "Requests will be refused for up to \(milliseconds / 1_000) s, as without the "
            + "\(subject.rawValue). Type yes to begin: "
        guard let typed = try console.ask(prompt) else {
            throw OperationalError(
                .usage, message: "drill \(subject.rawValue): expected --yes without a terminal")
        }
        guard typed == "yes" else {
            throw OperationalError(.failed, message: "drill \(subject.rawValue): not confirmed; nothing done")
        }
    }
}

extension DrillRun.Report {
    fileprivate var json: JSONValue {
        [
            "drill": .string(subject.rawValue), "duration_ms": .integer(duration),
            "end": .string(end.rawValue),
            "unready_after_ms": unreadyAfter.map { .integer($0) } ?? .null,
            "causes": .array(causes.map { .string($0) }), "requests": .integer(requests),
            "refused": .integer(refused), "ready_after_ms": readyAfter.map { .integer($0) } ?? .null,
        ]
    }

    fileprivate var text: String {
        func seconds(_ milliseconds: Int64) -> String {
            "\(milliseconds / 1_000).\(milliseconds % 1_000 / 100) s"
        }
        let unready =
            unreadyAfter.map { "503 after \(seconds($0)): \(causes.joined(separator: ", "))" }
            ?? "stayed 200: the drill was too short for it, or nothing needed the \(subject.rawValue)"
        let isEarly = end == .interrupted ? ", interrupted" : ""
        return """
            drill     \(subject.rawValue), \(seconds(duration))\(isEarly)
            /ready    \(unready)
            requests  \(requests), of which \(refused) were refused as unavailable
            recovery  \(readyAfter.map { "ready \(seconds($0)) after the end" } ?? "not ready within 30 s")
            """
    }
}
