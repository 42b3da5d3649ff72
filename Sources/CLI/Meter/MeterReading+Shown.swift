import CountersignAuthority
import CountersignSchemes
import CountersignWire

extension MeterReading {
    var text: String {
        var parts: [String] = []
        if lines.isEmpty && unsigned.isEmpty { parts.append("no releases") } else { parts.append(table) }
        for (app, passed) in observed {
            parts.append("would be refused of \(app): " + MeterReading.causes(passed.observed))
        }
        if !unknown.isEmpty {
            parts.append(
                "of no known release: " + MeterReading.causes(unknown)
            )
        }
        for row in unused {
            let mark = row.scheme.isLegacy ? ", legacy, which \(row.app) still allows" : ", which \(row.app) allows"
            let since = row.since.map { "since \(MeterReading.time($0))" } ?? "yet: no server has counted"
            parts.append("no request under \(row.scheme.rawValue)\(mark), \(since)")
        }
        return parts.joined(separator: "\n")
    }

    private var table: String {
        Table.text(
            [
                "APP", "PLATFORM", "VERSION", "SCHEME", "ACCEPTED", "NEXT", "OPEN", "REFUSED", "WOULD REFUSE",
                "LAST SEEN", "KEY ID",
            ],
            lines.map { line in
                let release = line.release
                return [
                    release.app.description, release.platform.description, release.version.description,
                    release.scheme.rawValue + release.scheme.mark, String(line.accepted),
                    line.nextShare, String(line.passed.open), String(line.refusals), String(line.passed.total),
                    line.lastSeen.map(MeterReading.time) ?? "never", release.id.description,
                ]
            }
                + unsigned.map { row in
                    [
                        row.app.description, "-", "-", "none", "0", "-", String(row.passed.open), "0",
                        String(row.passed.total), MeterReading.time(row.lastSeen), "-",
                    ]
                })
    }

    /// What an app's rules let through although they would refuse it, with and without a release.
    private var observed: [(app: AppName, passed: Passed)] {
        let all =
            lines.map { (app: $0.release.app, passed: $0.passed) } + unsigned.map { (app: $0.app, passed: $0.passed) }
        let grouped = Dictionary(grouping: all.filter { !$0.passed.observed.isEmpty }) { $0.app }
        return grouped.sorted { $0.key.description < $1.key.description }.map { app, rows in
            let sums = rows.reduce(into: Passed()) { sum, row in
                sum.observed.merge(row.passed.observed) { $0 + $1 }
            }
            return (app: app, passed: sums)
        }
    }

    private static func causes(_ counts: [String: Int64]) -> String {
        sorted(counts).map { "\($0.1) \($0.0)" }.joined(separator: ", ")
    }

    var json: JSONValue {
        [
            "since": .string(MeterReading.date(since * 86_400)), "releases": .array(lines.map(\.json)),
            "unsigned": .array(
                unsigned.map { row in
                    [
                        "app": .string(row.app.description), "open": .integer(row.passed.open),
                        "would_refuse": .integer(row.passed.total),
                        "would_refuse_by_code": MeterReading.json(row.passed.observed),
                        "last_seen": .integer(row.lastSeen),
                    ]
                }),
            "unknown": MeterReading.json(unknown),
            "unused": .array(
                unused.map { row in
                    [
                        "app": .string(row.app.description), "scheme": .string(row.scheme.rawValue),
                        "legacy": .bool(row.scheme.isLegacy), "since": row.since.map { .integer($0) } ?? .null,
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

    private static func time(_ seconds: Int64) -> String { Moment.text(seconds) }

    private static func date(_ seconds: Int64) -> String { Moment.dayText(seconds) }
}

extension MeterReading.Line {
    /// In whole per cent, rounded down: 100 means all.
    fileprivate var nextShare: String {
        if release.sealedNextSecret == nil { return "-" }
        return "\(underNextKey * 100 / max(accepted, 1))%"
    }

    fileprivate var json: JSONValue {
        [
            "key_id": .string(release.id.description), "app": .string(release.app.description),
            "platform": .string(release.platform.description), "version": .string(release.version.description),
            "scheme": .string(release.scheme.rawValue), "legacy": .bool(release.scheme.isLegacy),
            "protects": release.scheme == .token ? "session" : "request",
            "accepted": .integer(accepted), "accepted_next_key": .integer(underNextKey),
            "accepted_by_ticket": .integer(byTicket),
            "refused": .integer(refusals), "refused_by_code": MeterReading.json(refused),
            "open": .integer(passed.open), "would_refuse": .integer(passed.total),
            "would_refuse_by_code": MeterReading.json(passed.observed),
            "last_seen": lastSeen.map { .integer($0) } ?? .null,
        ]
    }
}

extension MeterReading.Passed {
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
