import CountersignAuthority
import CountersignServer
import CountersignWire

/// The server, its nodes and keys, what `doctor` finds, and the sessions and tokens.
enum ServerPages {
    static func server(_ visit: ConsoleVisit) throws(APIProblem) -> ConsolePage {
        try visit.require(.serverRead)
        let status = visit.figures.status(at: visit.now)
        let keys = try visit.run("getAnswerKeys")
        let facts: [(name: String, value: HTML)] = [
            ("Version", "\(try visit.run("getVersion").text("version"))"),
            ("Serving since", ConsoleMarkup.time(status.began)),
            ("Requests in flight", "\(status.requestsInFlight)"),
            ("Client connections", "\(status.connections)"),
            ("Replay guard", OverviewPage.replay(status.replay)),
            ("Certificate", OverviewPage.certificate(status.certificateExpiry, now: visit.now)),
            ("Key of answers", ConsoleMarkup.code(keys.text("authority_key"))),
            ("Next key of answers", ConsoleMarkup.code(keys.text("next_authority_key"))),
        ]
        return ConsolePage(
            "Server",
            body: """
                \(StatusNotices.markup(of: status, visit: visit))
                <p class="actions"><a class="button" href="\(ConsolePath.path("doctor"))">Run doctor</a></p>
                \(visit.actions([("reload", [])]))
                \(ConsoleMarkup.facts(facts))
                \(try nodes(visit))
                """)
    }

    private static func nodes(_ visit: ConsoleVisit) throws(APIProblem) -> HTML {
        let nodes = try visit.run("listNodes").records("nodes")
        guard let first = nodes.first else { return .none }
        let names = first.members.map(\.name)
        let rows: [[HTML]] = nodes.map { node in names.map { "\(node.text($0))" } }
        return ConsoleMarkup.section(
            "Nodes", id: "nodes",
            body: ConsoleMarkup.table(
                "Gateways over the same store", head: names.map(ActionPage.label), rows: rows, empty: ""))
    }

    /// The findings of `countersign doctor`, made when the page is asked for.
    static func doctor(_ visit: ConsoleVisit) throws(APIProblem) -> ConsolePage {
        try visit.require(.serverRead)
        var doctor = Doctor(
            Configuration.ReadResult(running: visit.host.configuration),
            environment: visit.environment.variables, now: visit.now)
        let rows: [[HTML]] = doctor.run().map { finding in
            let tone: ConsoleMarkup.Tone =
                switch finding.verdict {
                case .well: .good
                case .warning: .warning
                case .error: .bad
                }
            return [
                "\(finding.topic.rawValue)", ConsoleMarkup.badge(finding.verdict.rawValue, tone: tone),
                "\(finding.message)", finding.command.map { ConsoleMarkup.code($0) } ?? .none,
            ]
        }
        return ConsolePage(
            "Doctor", trail: [(title: "Server", path: ConsolePath.path("server"))],
            body: ConsoleMarkup.table(
                "Findings", head: ["Topic", "Verdict", "Finding", "Remedy"], rows: rows,
                empty: "No findings."))
    }

    static func operators(_ visit: ConsoleVisit) throws(APIProblem) -> ConsolePage {
        let tokens = try visit.run("listTokens").records("tokens")
        let rows: [[HTML]] = tokens.map { token in
            let id = token.text("id")
            let own: HTML = id == visit.session.id ? " (this session)" : .none
            return [
                "\(token.text("name"))\(own)", ConsoleMarkup.code(id),
                token.text("kind") == "console" ? "console" : "program",
                "\(token.texts("scopes").joined(separator: ", "))",
                ConsoleMarkup.time(token.number("created")),
                token.isTrue("expired")
                    ? ConsoleMarkup.badge("expired", tone: .quiet)
                    : ConsoleMarkup.time(token.number("expires")),
            ]
        }
        return ConsolePage(
            "Operators",
            body: """
                <p>Sessions of the console, and tokens of programs. On the server's machine,
                <code>countersign console</code> makes a link for another operator,
                <code>countersign token add</code> a token, and <code>countersign token revoke ID</code> ends
                either.</p>
                \(ConsoleMarkup.table(
                    "Who may come in", head: ["Name", "Id", "Kind", "Scopes", "Since", "Ends"], rows: rows,
                    empty: "No one."))
                """)
    }
}
