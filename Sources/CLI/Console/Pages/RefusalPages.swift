import CountersignAuthority
import CountersignGate
import CountersignServer
import CountersignWire

/// The latest refusals with a line in the log, and why each of them happened.
enum RefusalPages {
    private static let trail = [(title: "Refusals", path: ConsolePath.path("refusals"))]

    /// The most requests of one code that a page lists.
    private static let mostListed = 100

    static func list(_ visit: ConsoleVisit) throws(APIProblem) -> ConsolePage {
        let listing = try visit.run("listRefusals", values: ["limit": "1"])
        let rows: [[HTML]] = listing.records("causes").map { cause in
            let code = cause.text("code")
            return [
                ConsoleMarkup.link(code, to: ConsolePath.path("refusals", code)), "\(cause.text("count"))",
                "\(cause.text("explained"))", ConsoleMarkup.time(cause.number("latest")),
            ]
        }
        let since = listing.record("kept_since").map { ($0.number("proven"), $0.number("unproven")) }
        return ConsolePage(
            "Refusals",
            body: """
                <p>The latest requests of each cause that the gateway refused, or could not finish, and that
                have a line in the log. \(RefusalReport.extent(since: since))</p>
                \(ConsoleMarkup.table(
                    "Causes", head: ["Cause", "Kept", "Explained", "Latest"], rows: rows,
                    empty: "Nothing was refused yet."))
                """)
    }

    static func refusals(of code: String, visit: ConsoleVisit) throws(APIProblem) -> ConsolePage {
        let listing = try visit.run("listRefusals", values: ["code": code, "limit": "\(mostListed)"])
        let rows: [[HTML]] = listing.records("refusals").map { refusal in
            let event = refusal.text("event")
            let line = refusal.record("line")
            return [
                ConsoleMarkup.link(String(event.prefix(8)), to: ConsolePath.path("events", event)),
                ConsoleMarkup.time(refusal.number("time")), named(in: refusal),
                "\(line?.text("method") ?? "") \(line?.text("path") ?? "")",
                "\(client(of: line))", "\(refusal.record("cause")?.text("code") ?? "")",
            ]
        }
        return ConsolePage(
            code, trail: trail,
            body: ConsoleMarkup.table(
                "Requests that ended with \(code)",
                head: ["Event", "Time", "Names", "Request", "Client", "Mistake"],
                rows: rows, empty: "No such request is kept."))
    }

    static func event(_ id: String, visit: ConsoleVisit) throws(APIProblem) -> ConsolePage {
        let refusal = try visit.run("getRefusal", values: ["event": id])
        let line = refusal.record("line")
        let facts: [(name: String, value: HTML)] = (line?.members ?? []).map { member in
            let name = member.name == "us" ? "Microseconds" : ActionPage.label(member.name)
            return (name: name, value: ConsoleMarkup.code(member.text))
        }
        let code = refusal.text("code")
        return ConsolePage(
            "Event \(refusal.text("event").prefix(8))",
            trail: trail + [(title: code, path: ConsolePath.path("refusals", code))],
            body: """
                \(ConsoleMarkup.section("Why", id: "why", body: explanation(of: refusal, line: line)))
                \(ConsoleMarkup.section("The line of the log", id: "line", body: ConsoleMarkup.facts(facts)))
                """)
    }

    private static func explanation(of refusal: ConsoleRecord, line: ConsoleRecord?) -> HTML {
        var facts: [(name: String, value: HTML)] = [("Code", ConsoleMarkup.code(refusal.text("code")))]
        if refusal.has("release") { facts.append(("Names", named(in: refusal))) }
        if let detail = line?.text("detail"), !detail.isEmpty { facts.append(("Detail", "\(detail)")) }
        let cause = refusal.record("cause")
        if let cause {
            facts.append(("What happened", "\(cause.text("sentence"))"))
            facts.append(("Remedy", "\(cause.text("remedy"))"))
            facts.append(("Mistake", ConsoleMarkup.code(cause.text("code"))))
        }
        for note in refusal.texts("notes") { facts.append(("Not met", "\(note)")) }
        let hint: HTML
        if !refusal.isTrue("searched") {
            hint = """
                No mistake of a signer was looked for: the request names no release, or others were
                looked into at that time. With the whole request, <code>countersign explain --data DIR</code>
                shows each step.
                """
        } else if cause == nil {
            hint = "No usual mistake of a signer explains it: it has another secret, or was altered."
        } else {
            hint = .none
        }
        let rest: HTML = "<p class=\"hint\">\(hint)</p>"
        return ConsoleMarkup.facts(facts) + rest
    }

    /// The release that the request names.
    private static func named(in refusal: ConsoleRecord) -> HTML {
        guard refusal.has("release") else { return "–" }
        let release = refusal.text("release")
        let link = ConsoleMarkup.link(release, to: ConsolePath.path("releases", release))
        return "\(refusal.text("app")) \(link)"
    }

    private static func client(of line: ConsoleRecord?) -> String {
        guard let line else { return "" }
        return line.has("client") ? line.text("client") : line.text("peer")
    }
}
