import CountersignServer
import CountersignWire

/// How many requests of a release were accepted lately.
struct ReleaseUse: Sendable {
    let accepted: Int64
    let refused: Int64
    /// In whole Unix seconds.
    let lastSeen: Int64?
    /// Of the app's accepted requests, in percent.
    var share: Int64

    /// Of yesterday and today, by key id.
    static func today(_ visit: ConsoleVisit) throws(APIProblem) -> [String: ReleaseUse] {
        var uses: [String: ReleaseUse] = [:]
        var sums: [String: Int64] = [:]
        let records = try visit.run("getMeter", values: ["days": "2"]).records("releases")
        for record in records {
            let accepted =
                (record.number("accepted") ?? 0) + (record.number("accepted_next_key") ?? 0)
                + (record.number("accepted_by_ticket") ?? 0)
            sums[record.text("app"), default: 0] += accepted
            uses[record.text("key_id")] = ReleaseUse(
                accepted: accepted, refused: record.number("refused") ?? 0,
                lastSeen: record.number("last_seen"),
                share: 0)
        }
        for record in records {
            let (key, sum) = (record.text("key_id"), sums[record.text("app")] ?? 0)
            let accepted = uses[key]?.accepted ?? 0
            uses[key]?.share = sum == 0 ? 0 : accepted * 100 / sum
        }
        return uses
    }
}

/// One release, and the table of releases.
enum ReleasePages {
    static let head = ["Version", "Scheme", "Share", "Refused", "Stage", "Next key", "Last seen", ""]

    /// The cells of a release's row, under ``head``.
    static func cells(of release: ConsoleRecord, use: ReleaseUse?, visit: ConsoleVisit) -> [HTML] {
        let key = release.text("key_id")
        let name = "\(release.text("platform")) \(release.text("version"))"
        return [
            ConsoleMarkup.link(name, to: ConsolePath.path("releases", key)),
            "\(release.text("scheme"))",
            use.map { "\($0.share) %" } ?? "–",
            use.map { "\(ConsoleMarkup.number($0.refused))" } ?? "–",
            stage(of: release, now: visit.now),
            release.isTrue("next_key") ? ConsoleMarkup.badge("waits", tone: .quiet) : "–",
            ConsoleMarkup.time(use?.lastSeen, empty: "–"),
            visit.actions([
                (release.has("retirement") ? "undoRetirement" : "retireRelease", [("key", key)])
            ]),
        ]
    }

    /// As `release impact` names it, with the time of what comes next.
    static func stage(of release: ConsoleRecord, now: Int64) -> HTML {
        guard let retirement = release.record("retirement"), let end = retirement.number("at") else {
            return ConsoleMarkup.badge("live", tone: .good)
        }
        if end <= now { return ConsoleMarkup.badge("retired", tone: .quiet) }
        if let start = retirement.number("read_only_at"), start <= now {
            return ConsoleMarkup.badge("read-only", tone: .warning)
        }
        if let start = retirement.number("warn_at"), start <= now {
            return ConsoleMarkup.badge("warn", tone: .warning)
        }
        return "\(ConsoleMarkup.badge("live", tone: .good)) until \(ConsoleMarkup.time(end))"
    }

    static func release(_ key: String, of visit: ConsoleVisit) throws(APIProblem) -> ConsolePage {
        let policy = try visit.run("getReleasePolicy", values: ["key": key])
        let app = policy.text("app")
        let listed = try visit.run("listReleases", values: ["app": app]).records("releases")
        guard let release = listed.first(where: { $0.text("key_id") == key }) else {
            throw APIProblem(404, code: "not-found", detail: "release \(key): there is none")
        }
        let subject = [(name: "key", value: key)]
        let actions: [(operation: String, values: [(name: String, value: String)])] =
            [
                (release.has("retirement") ? "undoRetirement" : "retireRelease", subject)
            ]
            + (release.isTrue("next_key") ? ["promoteNextKey", "removeNextKey"] : ["addNextKey"]).map {
                ($0, subject)
            }
        let impact = try impact(of: key, visit: visit)
        let table = policyTable(policy, key: key, visit: visit)
        let facts: [(name: String, value: HTML)] = [
            ("Key id", ConsoleMarkup.code(key)), ("Scheme", "\(release.text("scheme"))"),
            ("Algorithm", "\(release.has("algorithm") ? release.text("algorithm") : "–")"),
            ("Stage", stage(of: release, now: visit.now)),
            ("Update", "\(release.has("update_url") ? release.text("update_url") : "–")"),
            ("Next key", release.isTrue("next_key") ? "waits to be promoted" : "none"),
            ("Added", ConsoleMarkup.time(release.number("created"))),
        ]
        return ConsolePage(
            "\(app) \(release.text("platform")) \(release.text("version"))",
            trail: [
                (title: "Apps", path: ConsolePath.path("apps")),
                (title: app, path: ConsolePath.path("apps", app)),
            ],
            body: """
                \(visit.actions(actions))
                \(ConsoleMarkup.facts(facts))
                \(ConsoleMarkup.section("If it were retired now", id: "impact", body: impact))
                \(ConsoleMarkup.section("Policy", id: "policy", body: table))
                """)
    }

    private static func policyTable(_ policy: ConsoleRecord, key: String, visit: ConsoleVisit) -> HTML {
        let rows: [[HTML]] = policy.records("policy").map { entry in
            let name = entry.text("key")
            let value = entry.text("value")
            return [
                ConsoleMarkup.code(name), "\(value)", "\(entry.text("from"))", "\(entry.text("meaning"))",
                visit.actions([
                    (
                        "changeReleasePolicy",
                        [
                            ("key", key), ("name", name),
                            ("value", entry.text("from") == "release" ? value : ""),
                        ]
                    )
                ]),
            ]
        }
        return ConsoleMarkup.table(
            "What callers of this release are judged by", head: ["Key", "Value", "Set for", "Meaning", ""],
            rows: rows,
            empty: "No key.")
    }

    /// The callers that would be cut off.
    static func impact(of key: String, visit: ConsoleVisit) throws(APIProblem) -> HTML {
        let impact = try visit.run("getImpact", values: ["key": key, "days": "7"])
        let days: [[HTML]] = impact.records("days").map {
            ["\($0.text("day"))", "\($0.text("accepted"))", "\($0.text("sent_away"))"]
        }
        return """
            \(ConsoleMarkup.facts([
                ("Share of the app's requests", "\(impact.text("share_percent")) %"),
                ("Accepted in 7 days", "\(ConsoleMarkup.number(impact.number("accepted") ?? 0))"),
                ("Sent to the update", "\(ConsoleMarkup.number(impact.number("sent_away") ?? 0))"),
                ("Live sessions", "\(ConsoleMarkup.number(impact.number("sessions") ?? 0))"),
                ("Last accepted", ConsoleMarkup.time(impact.number("last_accepted"))),
            ]))
            \(ConsoleMarkup.table(
                "Requests of this release by day", head: ["Day", "Accepted", "Sent to the update"],
                rows: days, empty: "No request in the last 7 days."))
            """
    }
}
