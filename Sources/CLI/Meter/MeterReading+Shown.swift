import CountersignAuthority
import CountersignSchemes
import CountersignWire

extension MeterReading {
    var text: String {
        var parts: [String] = []
        if lines.isEmpty { parts.append("no releases") } else { parts.append(table) }
        if !unknown.isEmpty {
            parts.append(
                "of no known release: " + MeterReading.sorted(unknown).map { "\($0.1) \($0.0)" }.joined(separator: ", ")
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
            ["APP", "PLATFORM", "VERSION", "SCHEME", "ACCEPTED", "NEXT", "REFUSED", "LAST SEEN", "KEY ID"],
            lines.map { line in
                let release = line.release
                return [
                    release.app.description, release.platform.description, release.version.description,
                    release.scheme.rawValue + (release.scheme.isLegacy ? " (legacy)" : ""), String(line.accepted),
                    line.nextShare, String(line.refusals), line.lastSeen.map(MeterReading.time) ?? "never",
                    release.id.description,
                ]
            })
    }

    var json: JSONValue {
        [
            "since": .string(MeterReading.date(since * 86_400)), "releases": .array(lines.map(\.json)),
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
            "accepted": .integer(accepted), "accepted_next_key": .integer(underNextKey),
            "refused": .integer(refusals), "refused_by_code": MeterReading.json(refused),
            "last_seen": lastSeen.map { .integer($0) } ?? .null,
        ]
    }
}
