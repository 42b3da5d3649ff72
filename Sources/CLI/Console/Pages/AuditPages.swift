import CountersignServer
import CountersignWire

/// The record of changes, and whether it is whole.
enum AuditPages {
    private static let pageLength: Int64 = 50

    static func list(_ request: ConsoleRequest, of visit: ConsoleVisit) throws(APIProblem) -> ConsolePage {
        var values = ["limit": "\(pageLength)"]
        let before = Int64(request.value("before")) ?? 0
        if before > 1 {
            values["after"] = "\(max(0, before - pageLength - 1))"
            values["limit"] = "\(min(pageLength, before - 1))"
        }
        let records = try visit.run("listAudit", values: values).records("records")
        let first = records.first?.number("number") ?? 1
        let target = ConsolePath.path("audit", query: [("before", "\(first)")])
        let earlier: HTML =
            first > 1
            ? "<p><a rel=\"next\" href=\"\(target)\">Earlier</a></p>"
            : .none
        return ConsolePage(
            "Audit",
            body: """
                <p class="actions"><a class="button"
                 href="\(ConsolePath.path("audit", "verification"))">Verify all records</a></p>
                \(table(of: records.reversed(), visit: visit))
                \(earlier)
                """)
    }

    static func table(of records: [ConsoleRecord], visit: ConsoleVisit) -> HTML {
        let rows: [[HTML]] = records.map { record in
            [
                "\(record.text("number"))", ConsoleMarkup.time(record.number("time")), "\(actor(of: record))",
                ConsoleMarkup.code(record.text("action")), subject(of: record),
                details(of: record),
            ]
        }
        return ConsoleMarkup.table(
            "Changes, the latest first", head: ["No.", "Time", "By", "Change", "Of", "Details"], rows: rows,
            empty: "No change is recorded.")
    }

    private static func actor(of record: ConsoleRecord) -> String {
        guard let actor = record.record("actor") else { return "" }
        let name = actor.has("name") ? actor.text("name") : actor.text("uid")
        switch actor.text("kind") {
        case "os-user": return "\(name) on the machine"
        case "token": return "\(name) (\(actor.text("id")))"
        case "account": return "account \(actor.text("pseudonym"))"
        default: return actor.text("kind")
        }
    }

    private static func subject(of record: ConsoleRecord) -> HTML {
        let app = record.text("app")
        if record.has("release") {
            let key = record.text("release")
            return "\(app) \(ConsoleMarkup.link(key, to: ConsolePath.path("releases", key)))"
        }
        if record.has("account") {
            let name = record.text("account")
            return "\(app) \(ConsoleMarkup.link(name, to: ConsolePath.path("apps", app, "accounts", name)))"
        }
        if record.has("pseudonym") { return "\(app) \(record.text("pseudonym"))" }
        if record.has("session") { return "\(app) \(ConsoleMarkup.code(record.text("session")))" }
        return app.isEmpty ? "the deployment" : ConsoleMarkup.link(app, to: ConsolePath.path("apps", app))
    }

    private static func details(of record: ConsoleRecord) -> HTML {
        guard let details = record.record("details") else { return .none }
        let parts: [HTML] = details.members.enumerated().map { index, member in
            let separator: HTML = index == 0 ? .none : ", "
            guard AuditLine.isTime(member.name), let time = details.number(member.name) else {
                return "\(separator)\(member.name): \(member.text)"
            }
            return "\(separator)\(member.name): \(ConsoleMarkup.time(time))"
        }
        return "\(parts)"
    }

    static func verification(_ visit: ConsoleVisit) throws(APIProblem) -> ConsolePage {
        let result = try visit.run("verifyAudit")
        let rows = result.record("rows")
        let findings = result.records("findings") + (rows?.records("findings") ?? [])
        let texts: [HTML] = findings.map { finding in
            "<li>\(finding.members.map { "\($0.name): \($0.text)" }.joined(separator: ", "))</li>"
        }
        return ConsolePage(
            "Verification", trail: [(title: "Audit", path: ConsolePath.path("audit"))],
            body: """
                \(findings.isEmpty
                    ? ConsoleMarkup.notice("All records and all rows are whole.", tone: .good)
                    : ConsoleMarkup.notice("Records or rows were altered in the database.", tone: .bad))
                <ul>\(texts)</ul>
                \(ConsoleMarkup.facts([
                    ("Records", "\(result.text("records"))"), ("Rows", "\(rows?.text("verified") ?? "")"),
                    ("Head", ConsoleMarkup.code(result.text("head"))),
                ]))
                <p class="hint">Keep the head in another place: only it finds a whole database that was put
                back.</p>
                """)
    }
}
