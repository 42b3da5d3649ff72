import CountersignAuthority
import CountersignServer
import CountersignThreads
import CountersignWire

/// The first page: whether traffic is served, by which releases, what is refused, and the state of the parts.
enum OverviewPage {
    private static let mostReleases = 60
    private static let mostChanges = 5

    static func page(_ visit: ConsoleVisit) -> ConsolePage {
        let status = visit.figures.status(at: visit.now)
        let traffic = visit.may(.serverRead) ? trafficSection(visit) : .none
        let releases = section(.releasesRead, "Releases", id: "releases", of: visit, body: releaseSection)
        let refusals = visit.may(.serverRead) ? refusalSection(visit) : .none
        let parts = section(.serverRead, "Parts", id: "parts", of: visit) { (visit) throws(APIProblem) in
            try partSection(status, visit: visit)
        }
        let changes = section(.auditRead, "Last changes", id: "changes", of: visit, body: changeSection)
        return ConsolePage(
            "Overview",
            body: """
                \(StatusNotices.markup(of: status, visit: visit))
                \(traffic)
                <div class="columns">\(releases)\(refusals)</div>
                \(parts)\(changes)
                """)
    }

    /// A section for operators with the scope. While the store cannot be read, the page has the rest.
    private static func section(
        _ scope: APIScope, _ title: String, id: String, of visit: ConsoleVisit,
        body: (ConsoleVisit) throws(APIProblem) -> HTML
    ) -> HTML {
        guard visit.may(scope) else { return .none }
        do throws(APIProblem) {
            return try body(visit)
        } catch {
            return StatusNotices.absence(title, id: id, because: error)
        }
    }

    // MARK: Traffic

    private static func trafficSection(_ visit: ConsoleVisit) -> HTML {
        let live = LiveFigures(visit)
        let tiles: [HTML] = live.tiles.map { tile in
            """
            <div class="tile"><dt>\(tile.title)</dt>
            <dd><strong id="live-\(tile.id)">\(tile.value)</strong>
            <span class="hint">a day ago:
            <span id="live-\(tile.id)-before">\(tile.before)</span></span></dd></div>

            """
        }
        return ConsoleMarkup.section(
            "Traffic", id: "traffic",
            body: """
                <dl class="tiles" data-live="\(ConsolePath.path("live"))">\(tiles)</dl>
                <figure><svg class="chart" viewBox="0 0 600 80" preserveAspectRatio="none" role="img" \
                aria-label="Requests a minute in the last hour"><path id="live-chart"
                 d="\(live.chart)"></path></svg>
                <figcaption class="hint">Requests a minute in the last hour, at this process; at most \
                <span id="live-most">\(ConsoleMarkup.number(live.most))</span>. \
                <span id="live-time">\(live.time)</span></figcaption></figure>
                """)
    }

    // MARK: Releases

    private static func releaseSection(_ visit: ConsoleVisit) throws(APIProblem) -> HTML {
        var rows: [[HTML]] = []
        var leftOut = 0
        let use = visit.may(.serverRead) ? try ReleaseUse.today(visit) : [:]
        for app in try visit.apps() {
            for release in try visit.run("listReleases", values: ["app": app]).records("releases") {
                guard rows.count < mostReleases else {
                    leftOut += 1
                    continue
                }
                let used = use[release.text("key_id")]
                rows.append(
                    [ConsoleMarkup.link(app, to: ConsolePath.path("apps", app))]
                        + ReleasePages.cells(of: release, use: used, visit: visit))
            }
        }
        let rest: HTML =
            leftOut == 0 ? .none : "<p class=\"hint\">\(leftOut) more are on the pages of their apps.</p>"
        return ConsoleMarkup.section(
            "Releases", id: "releases",
            body: ConsoleMarkup.table(
                "Releases by app; shares and refusals are of yesterday and today",
                head: ["App"] + ReleasePages.head, rows: rows,
                empty: "No app has a release yet.") + rest)
    }

    // MARK: Refusals

    private static func refusalSection(_ visit: ConsoleVisit) -> HTML {
        var counts: [String: UInt64] = [:]
        for minute in visit.figures.traffic.last(60) {
            for (code, count) in minute.refusals { counts[code.name, default: 0] += count }
        }
        let rows: [[HTML]] = counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.prefix(8).map {
            [
                ConsoleMarkup.link($0.key, to: ConsolePath.path("refusals", $0.key)),
                "\(ConsoleMarkup.number($0.value))",
            ]
        }
        return ConsoleMarkup.section(
            "Refused in the last hour", id: "refused",
            body: ConsoleMarkup.table(
                "Refusals by cause", head: ["Cause", "Requests"], rows: rows,
                empty: "Nothing was refused in the minutes that are over."))
    }

    // MARK: Parts

    private static func partSection(
        _ status: ServerFigures.Status, visit: ConsoleVisit
    ) throws(APIProblem) -> HTML {
        let store = status.problems.first { $0.cause == "store" }
        let nodes = try visit.run("listNodes").records("nodes")
        var facts: [(name: String, value: HTML)] = [
            (
                "Store",
                store.map { ConsoleMarkup.badge($0.detail, tone: .bad) }
                    ?? ConsoleMarkup.badge("well", tone: .good)
            ),
            ("Replay guard", replay(status.replay)),
            ("Nodes", nodes.isEmpty ? "this one alone" : "\(nodes.count)"),
            ("Certificate", certificate(status.certificateExpiry, now: visit.now)),
            ("Last backup", lastBackup(visit)),
            (
                "Rows altered",
                status.rowFindings == 0
                    ? "none" : ConsoleMarkup.badge("\(status.rowFindings)", tone: .bad)
            ),
            ("Serving since", ConsoleMarkup.time(status.began)),
        ]
        if visit.may(.auditRead) {
            let head = try visit.run("listAudit", values: ["limit": "1"]).records("records").last
            facts.append(("Audit records", "\(head?.text("number") ?? "0")"))
        }
        return ConsoleMarkup.section("Parts", id: "parts", body: ConsoleMarkup.facts(facts))
    }

    static func replay(_ replay: ServerFigures.Replay) -> HTML {
        switch replay {
        case .file(let entries, let capacity):
            let percent = capacity == 0 ? 0 : entries * 100 / capacity
            return """
                <meter min="0" max="100" high="90" value="\(percent)"
                 aria-label="Replay table in use">\(percent) %</meter>
                \(percent) % of \(ConsoleMarkup.number(capacity))
                """
        case .shared(let title, let failure):
            return failure.map { ConsoleMarkup.badge("\(title): \($0)", tone: .bad) }
                ?? ConsoleMarkup.badge("\(title): well", tone: .good)
        }
    }

    static func certificate(_ expiry: Int64?, now: Int64) -> HTML {
        guard let expiry else { return "no TLS here" }
        let days = (expiry - now) / 86_400
        let tone: ConsoleMarkup.Tone =
            days < 7 ? .bad : days < ServerFigures.daysBeforeCertificateEnd ? .warning : .quiet
        return ConsoleMarkup.badge(expiry <= now ? "has ended" : "\(days) days left", tone: tone)
    }

    /// A record that cannot be read is shown, and does not take the page away.
    private static func lastBackup(_ visit: ConsoleVisit) -> HTML {
        do throws(APIProblem) {
            let last = try visit.run("getLastBackup")
            guard last.isTrue("own") else { return "made with PostgreSQL’s tools" }
            guard let made = last.number("made") else {
                return ConsoleMarkup.badge("none was made", tone: .warning)
            }
            let age = (last.number("age") ?? 0) / 3600
            let text = age < 48 ? "\(age) h ago" : "\(age / 24) days ago"
            let mark =
                last.isTrue("overdue")
                ? ConsoleMarkup.badge("overdue: \(text)", tone: .warning)
                : ConsoleMarkup.badge(text, tone: .good)
            return "\(mark) \(ConsoleMarkup.time(made))"
        } catch {
            return ConsoleMarkup.badge(error.detail, tone: .bad)
        }
    }

    private static func changeSection(_ visit: ConsoleVisit) throws(APIProblem) -> HTML {
        let records = try visit.run("listAudit", values: ["limit": "\(mostChanges)"]).records("records")
        return ConsoleMarkup.section(
            "Last changes", id: "changes", body: AuditPages.table(of: records.reversed(), visit: visit))
    }
}
