import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignWire

extension Command {
    static let meter = Command(
        words: ["meter"], summary: "show the requests of each release and scheme",
        positionals: [Positional(name: "APP", presence: .optional)],
        options: [
            .value("days", placeholder: "N", meaning: "so many days back, today among them (default: 30)"),
            .data, .json,
        ],
        notes: """
            Counts how each request ended; a running server adds its figures every two seconds. ACCEPTED are \
            those whose
            response was delivered, FAILED those that were admitted and then failed at the backend, its \
            statuses of 500 and more
            included, or at the client. NEXT is the
            share of the accepted that signed with the release's next key. Refused requests count where they \
            claim to come
            from, which they have not proved. Days are UTC, and are kept for 400 days.
            """
    ) { (run) throws(OperationalError) in
        let days = try run.meterDays()
        let deployment = try run.deployment()
        let app = try run.arguments.positional("APP").map { (name) throws(OperationalError) in
            try deployment.app(AppName(argument: name)).name
        }
        let reading = try MeterReport(deployment.store, app: app, since: run.now / 86_400 - days + 1)
        try run.print(reading.json) { reading.text }
        run.console.note("note: a running server adds its figures every two seconds")
        return .success
    }
}

extension Invocation {
    /// What `--days` says.
    func meterDays() throws(OperationalError) -> Int64 {
        guard let text = arguments.value("days") else { return 30 }
        guard let days = Int64(text), (1...400).contains(days) else {
            throw OperationalError(.usage, message: "--days `\(text)`: expected a number from 1 to 400")
        }
        return days
    }
}

/// The meter of several days as a table: a line for each release, and the releases without requests.
struct MeterReport {
    /// One release, and what was counted of it.
    struct Line {
        var release: Release
        var accepted: Int64 = 0
        /// Of those, how many under the next key.
        var underNextKey: Int64 = 0
        /// Of those, how many by an upload ticket.
        var byTicket: Int64 = 0
        /// By the refusal's code.
        var refused: [String: Int64] = [:]
        /// Admitted requests that failed, by the cause.
        var failed: [String: Int64] = [:]
        /// Responses of the backend by the class of their status, as `5xx`.
        var responses: [String: Int64] = [:]
        /// Stored responses that were delivered again, by the class of their status.
        var repeated: [String: Int64] = [:]
        var passed = UnverifiedCounts()
        /// Whole Unix seconds; nil where nothing came.
        var lastSeen: Int64?

        var refusals: Int64 { refused.values.reduce(0, +) }
        var failures: Int64 { failed.values.reduce(0, +) }
    }

    /// Requests that the gateway forwarded without a proof.
    struct UnverifiedCounts {
        /// On open routes.
        var open: Int64 = 0
        /// By the code of the refusal that was only observed.
        var observed: [String: Int64] = [:]
        /// Requests of both kinds that failed.
        var failed: Int64 = 0

        var isEmpty: Bool { open == 0 && observed.isEmpty && failed == 0 }

        mutating func add(_ entry: MeterEntry) {
            switch entry.subject.outcome {
            case .open: open += entry.count
            case .observed(let code): observed[code.rawValue, default: 0] += entry.count
            case .failed: failed += entry.count
            case .accepted, .acceptedUnderNextKey, .acceptedByTicket, .refused, .answered, .repeated: break
            }
        }
    }

    /// Requests that named no release and came to an app's host.
    struct UnsignedRow {
        var app: AppName
        var passed = UnverifiedCounts()
        /// Calls of legacy clients that the authority answered.
        var accepted: Int64 = 0
        /// By the refusal's code.
        var refused: [String: Int64] = [:]
        /// As ``Line/responses``.
        var responses: [String: Int64] = [:]
        /// Whole Unix seconds; 0 if there were none.
        var lastSeen: Int64 = 0

        mutating func add(_ entry: MeterEntry) {
            passed.add(entry)
            lastSeen = max(lastSeen, entry.lastSeen)
            switch entry.subject.outcome {
            case .accepted: accepted += entry.count
            case .refused(let code): refused[code.rawValue, default: 0] += entry.count
            case .answered(let status): responses[status.text, default: 0] += entry.count
            default: break
            }
        }
    }

    /// A scheme that an app's policy allows and under which no request was accepted.
    struct UnusedScheme {
        var app: AppName
        var scheme: SchemeName
        /// Whole Unix seconds; nil where no server has run yet.
        var since: Int64?
    }

    /// The first of the days, since 1970-01-01 UTC.
    let since: Int64
    private(set) var lines: [Line] = []
    private(set) var unused: [UnusedScheme] = []
    /// Only apps of which such requests came.
    private(set) var unsigned: [UnsignedRow] = []
    /// Requests that named no release, by the code of their refusal. Left out of the report for a single app,
    /// because their app is unknown.
    private(set) var unknown: [String: Int64] = [:]

    init(_ store: any Store, app: AppName?, since: Int64) throws(OperationalError) {
        self.since = since
        let stored = try store.snapshot()
        let all = try store.meter(since: 0)
        let began = try store.value(of: .meterBegan).flatMap { Int64(String(decoding: $0, as: UTF8.self)) }
        for release in stored.releases where app == nil || release.app == app {
            lines.append(MeterReport.line(of: release, entries: all.filter { $0.day >= since }))
        }
        for owner in stored.apps where app == nil || owner.name == app {
            var row = UnsignedRow(app: owner.name)
            for entry in all
            where entry.subject.release.isEmpty && entry.subject.app == owner.name.description
                && entry.day >= since
            {
                row.add(entry)
            }
            if row.lastSeen > 0 { unsigned.append(row) }
            if let others = MeterReport.otherVersions(of: owner.name) {
                let line = MeterReport.line(of: others, entries: all.filter { $0.day >= since })
                if line.lastSeen != nil { lines.append(line) }
            }
        }
        for entry in all where app == nil && entry.subject.app.isEmpty && entry.day >= since {
            if case .refused(let code) = entry.subject.outcome {
                unknown[code.rawValue, default: 0] += entry.count
            }
        }
        for owner in stored.apps where app == nil || owner.name == app {
            let allowed = try MeterReport.allowed(by: owner, releases: stored.releases)
            for scheme in SchemeName.allCases where allowed.contains(scheme) {
                let seen = all.filter { $0.isAccepted(of: owner.name, scheme: scheme) }
                guard !seen.contains(where: { $0.day >= since }) else { continue }
                unused.append(
                    UnusedScheme(app: owner.name, scheme: scheme, since: seen.map(\.lastSeen).max() ?? began))
            }
        }
    }

    private static func line(of release: Release, entries: [MeterEntry]) -> Line {
        var line = Line(release: release)
        for entry in entries where entry.subject.release == release.id.description {
            line.lastSeen = max(line.lastSeen ?? 0, entry.lastSeen)
            switch entry.subject.outcome {
            case .accepted: line.accepted += entry.count
            case .acceptedByTicket:
                line.accepted += entry.count
                line.byTicket += entry.count
            case .acceptedUnderNextKey:
                line.accepted += entry.count
                line.underNextKey += entry.count
            case .refused(let code): line.refused[code.rawValue, default: 0] += entry.count
            case .failed(let failure): line.failed[failure.rawValue, default: 0] += entry.count
            case .open, .observed: line.passed.add(entry)
            case .answered(let status): line.responses[status.text, default: 0] += entry.count
            case .repeated(let status): line.repeated[status.text, default: 0] += entry.count
            }
        }
        return line
    }

    /// What stands for the versions of scheme token that are not registered.
    private static func otherVersions(of app: AppName) -> Release? {
        guard let platform = Platform(HostedApp.unknown), let version = Version(HostedApp.unknown) else {
            return nil
        }
        return Release(
            id: HostedApp.otherVersionsID(of: app.description), app: app, platform: platform,
            version: version, scheme: .token, sealedSecret: [], created: 0)
    }

    /// By the app's policy, or by that of one of its releases.
    private static func allowed(by app: App, releases: [Release]) throws(OperationalError) -> Set<SchemeName>
    {
        var allowed = try app.policy().schemes
        for release in releases where release.app == app.name && !release.settings.isEmpty {
            allowed.formUnion(try app.policy(for: release).schemes)
        }
        return allowed
    }
}

extension MeterEntry {
    fileprivate func isAccepted(of app: AppName, scheme: SchemeName) -> Bool {
        guard subject.app == app.description, subject.scheme == scheme.rawValue else { return false }
        return subject.outcome.countsAsAdmitted
    }
}

extension MeterReport {
    var text: String {
        var parts: [String] = []
        if lines.isEmpty && unsigned.isEmpty { parts.append("no releases") } else { parts.append(table) }
        for (app, counts) in responses {
            parts.append("responses of the backend to \(app): " + MeterReport.causes(counts))
        }
        for (app, passed) in observed {
            parts.append("would be refused of \(app): " + MeterReport.causes(passed.observed))
        }
        if !unknown.isEmpty {
            parts.append(
                "of no known release: " + MeterReport.causes(unknown)
            )
        }
        for row in unused {
            let mark =
                row.scheme.isLegacy ? ", legacy, which \(row.app) still allows" : ", which \(row.app) allows"
            let since = row.since.map { "since \(MeterReport.time($0))" } ?? "yet: no server has counted"
            parts.append("no request under \(row.scheme.rawValue)\(mark), \(since)")
        }
        return parts.joined(separator: "\n")
    }

    private var table: String {
        Table.text(
            head: [
                "APP", "PLATFORM", "VERSION", "SCHEME", "ACCEPTED", "NEXT", "FAILED", "OPEN", "REFUSED",
                "WOULD REFUSE", "LAST SEEN", "KEY ID",
            ],
            rows: lines.map { line in
                let release = line.release
                return [
                    release.app.description, release.platform.description, release.version.description,
                    release.scheme.rawValue + release.scheme.mark, String(line.accepted),
                    line.nextShare, String(line.failures), String(line.passed.open), String(line.refusals),
                    String(line.passed.total),
                    line.lastSeen.map(MeterReport.time) ?? "never", release.id.description,
                ]
            }
                + unsigned.map { row in
                    [
                        row.app.description, "-", "-", "none", String(row.accepted), "-",
                        String(row.passed.failed),
                        String(row.passed.open), String(row.refused.values.reduce(0, +)),
                        String(row.passed.total), MeterReport.time(row.lastSeen), "-",
                    ]
                })
    }

    /// What an app's rules let through although they would refuse it, with and without a release.
    private var observed: [(app: AppName, passed: UnverifiedCounts)] {
        let all =
            lines.map { (app: $0.release.app, passed: $0.passed) }
            + unsigned.map { (app: $0.app, passed: $0.passed) }
        let grouped = Dictionary(grouping: all.filter { !$0.passed.observed.isEmpty }) { $0.app }
        return grouped.sorted { $0.key.description < $1.key.description }.map { app, rows in
            let sums = rows.reduce(into: UnverifiedCounts()) { sum, row in
                sum.observed.merge(row.passed.observed) { $0 + $1 }
            }
            return (app: app, passed: sums)
        }
    }

    /// The backend's responses of each app, with and without a release.
    private var responses: [(app: AppName, counts: [String: Int64])] {
        var sums: [AppName: [String: Int64]] = [:]
        for line in lines { sums[line.release.app, default: [:]].merge(line.responses) { $0 + $1 } }
        for row in unsigned { sums[row.app, default: [:]].merge(row.responses) { $0 + $1 } }
        return sums.filter { !$0.value.isEmpty }.sorted { $0.key.description < $1.key.description }
            .map { (app: $0.key, counts: $0.value) }
    }

    private static func causes(_ counts: [String: Int64]) -> String {
        sorted(counts).map { "\($0.1) \($0.0)" }.joined(separator: ", ")
    }

    var json: JSONValue {
        [
            "since": .string(MeterReport.date(since * 86_400)), "releases": .array(lines.map(\.json)),
            "unsigned": .array(
                unsigned.map { row in
                    [
                        "app": .string(row.app.description), "accepted": .integer(row.accepted),
                        "refused_by_code": MeterReport.json(row.refused),
                        "failed": .integer(row.passed.failed), "open": .integer(row.passed.open),
                        "backend_responses": MeterReport.json(row.responses),
                        "would_refuse": .integer(row.passed.total),
                        "would_refuse_by_code": MeterReport.json(row.passed.observed),
                        "last_seen": .integer(row.lastSeen),
                    ]
                }),
            "unknown": MeterReport.json(unknown),
            "unused": .array(
                unused.map { row in
                    [
                        "app": .string(row.app.description), "scheme": .string(row.scheme.rawValue),
                        "legacy": .bool(row.scheme.isLegacy),
                        "since": row.since.map { .integer($0) } ?? .null,
                    ]
                }),
        ]
    }

    fileprivate static func json(_ counts: [String: Int64]) -> JSONValue {
        .object(sorted(counts).map { (name: $0.0, value: .integer($0.1)) })
    }

    private static func sorted(_ counts: [String: Int64]) -> [(String, Int64)] {
        counts.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    private static func time(_ seconds: Int64) -> String { TimeText.text(seconds) }

    private static func date(_ seconds: Int64) -> String { TimeText.dayText(seconds) }
}

extension MeterReport.Line {
    /// In whole per cent, rounded down: 100 means all.
    fileprivate var nextShare: String {
        if release.sealedNextSecret == nil { return "-" }
        return "\(underNextKey * 100 / max(accepted, 1))%"
    }

    fileprivate var json: JSONValue {
        [
            "key_id": .string(release.id.description), "app": .string(release.app.description),
            "platform": .string(release.platform.description),
            "version": .string(release.version.description),
            "scheme": .string(release.scheme.rawValue), "legacy": .bool(release.scheme.isLegacy),
            "protects": release.scheme == .token ? "session" : "request",
            "accepted": .integer(accepted), "accepted_next_key": .integer(underNextKey),
            "accepted_by_ticket": .integer(byTicket),
            "refused": .integer(refusals), "refused_by_code": MeterReport.json(refused),
            "failed": .integer(failures), "failed_by_cause": MeterReport.json(failed),
            "backend_responses": MeterReport.json(responses),
            "repeated_responses": MeterReport.json(repeated),
            "open": .integer(passed.open), "would_refuse": .integer(passed.total),
            "would_refuse_by_code": MeterReport.json(passed.observed),
            "last_seen": lastSeen.map { .integer($0) } ?? .null,
        ]
    }
}

extension MeterReport.UnverifiedCounts {
    /// Of those that would be refused.
    fileprivate var total: Int64 { observed.values.reduce(0, +) }
}

extension SchemeName {
    /// Beside its name in the table.
    fileprivate var mark: String {
        switch self {
        case .token: " (legacy, protects the session only)"
        default: isLegacy ? " (legacy)" : ""
        }
    }
}
