import CountersignAuthority
import CountersignGate
import CountersignServer
import CountersignWire

/// The latest refusals with a line in the log, and why each of them happened.
enum RefusalPages {
    private static let trail = [(title: "Refusals", path: ConsolePath.path("refusals"))]

    static func list(_ visit: ConsoleVisit) throws(APIProblem) -> ConsolePage {
        try visit.require(.serverRead)
        let refusals = visit.figures.refusals
        let rows: [[HTML]] = refusals.codes.map { code in
            let kept = refusals.all(of: code)
            let explained = kept.count { $0.cause != nil }
            return [
                ConsoleMarkup.link(code, to: ConsolePath.path("refusals", code)), "\(kept.count)",
                "\(explained)",
                ConsoleMarkup.code(kept.first.flatMap { ConsoleRecord($0.line)?.text("time") } ?? ""),
            ]
        }
        return ConsolePage(
            "Refusals",
            body: """
                <p>The latest requests of each cause that the gateway refused, or could not finish, and that
                have a line in the log. \(extent(of: refusals))</p>
                \(ConsoleMarkup.table(
                    "Causes", head: ["Cause", "Kept", "Explained", "Latest"], rows: rows,
                    empty: "Nothing was refused yet."))
                """)
    }

    /// States since when refusals are kept on the disk.
    private static func extent(of refusals: RecentRefusals) -> String {
        guard let oldest = refusals.store?.oldest else {
            return "They are only in memory. After a restart, only the log has them."
        }
        func text(_ time: Int64?) -> String { time.map(TimeText.text) ?? "now" }
        return "The search by event id covers all refusals on the disk: those of callers with proof since "
            + "\(text(oldest.proven)), and others since \(text(oldest.unproven)). The lists cover the "
            + "latest \(RefusalStore.mostRead) of each kind."
    }

    static func refusals(of code: String, visit: ConsoleVisit) throws(APIProblem) -> ConsolePage {
        try visit.require(.serverRead)
        let rows: [[HTML]] = visit.figures.refusals.all(of: code).map { refusal in
            let line = ConsoleRecord(refusal.line)
            return [
                ConsoleMarkup.link(
                    String(refusal.event.prefix(8)), to: ConsolePath.path("events", refusal.event)),
                "\(line?.text("time") ?? "")", named(in: refusal),
                "\(line?.text("method") ?? "") \(line?.text("path") ?? "")",
                "\(client(of: line))", "\(refusal.cause?.code ?? "")",
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
        try visit.require(.serverRead)
        guard let refusal = visit.figures.refusals.refusal(of: id.lowercased()) else {
            throw APIProblem(
                404, code: "not-found",
                detail: "event \(id): no such refusal is stored; the log may have it")
        }
        let line = ConsoleRecord(refusal.line)
        let facts: [(name: String, value: HTML)] = (line?.members ?? []).map { member in
            let name = member.name == "us" ? "Microseconds" : ActionPage.label(member.name)
            return (name: name, value: ConsoleMarkup.code(member.text))
        }
        return ConsolePage(
            "Event \(refusal.event.prefix(8))",
            trail: trail + [(title: refusal.code, path: ConsolePath.path("refusals", refusal.code))],
            body: """
                \(ConsoleMarkup.section("Why", id: "why", body: explanation(of: refusal, line: line)))
                \(ConsoleMarkup.section("The line of the log", id: "line", body: ConsoleMarkup.facts(facts)))
                """)
    }

    private static func explanation(of refusal: RecentRefusal, line: ConsoleRecord?) -> HTML {
        var facts: [(name: String, value: HTML)] = [("Code", ConsoleMarkup.code(refusal.code))]
        if refusal.named != nil { facts.append(("Names", named(in: refusal))) }
        if let detail = line?.text("detail"), !detail.isEmpty { facts.append(("Detail", "\(detail)")) }
        if let cause = refusal.cause {
            facts.append(("What happened", "\(cause.sentence)"))
            facts.append(("To mend it", "\(cause.remedy)"))
            facts.append(("Mistake", ConsoleMarkup.code(cause.code)))
        }
        let hint: HTML
        switch refusal.search {
        case .made(let cause, let notes):
            for note in notes { facts.append(("Not met", "\(note)")) }
            hint =
                cause == nil
                ? "No usual mistake of a signer explains it: it has another secret, or was altered."
                : .none
        case .notMade:
            hint = """
                No mistake of a signer was looked for: the request names no release, or others were
                looked into at that time. With the whole request, <code>countersign explain --data DIR</code>
                shows each step.
                """
        }
        let rest: HTML = "<p class=\"hint\">\(hint)</p>"
        return ConsoleMarkup.facts(facts) + rest
    }

    /// The release that the request names.
    private static func named(in refusal: RecentRefusal) -> HTML {
        guard let (app, release) = refusal.named else { return "–" }
        return "\(app) \(ConsoleMarkup.link(release, to: ConsolePath.path("releases", release)))"
    }

    private static func client(of line: ConsoleRecord?) -> String {
        guard let line else { return "" }
        return line.has("client") ? line.text("client") : line.text("peer")
    }
}
