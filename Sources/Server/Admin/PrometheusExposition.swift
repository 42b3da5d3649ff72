import CountersignThreads
import CountersignWire

/// The text form of metrics that a scraper asks for.
enum MetricsFormat: Sendable {
    /// Prometheus' own. Source: prometheus.io, "Exposition formats", version 0.0.4.
    case prometheus
    /// Source: OpenMetrics 1.0.0.
    case openMetrics

    var contentType: String {
        switch self {
        case .prometheus: "text/plain; version=0.0.4; charset=utf-8"
        case .openMetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8"
        }
    }

    /// The format that `accept`, the value of the field, prefers: OpenMetrics only where it is named, in
    /// version 1.0.0 or without a version, and with no less weight than plain text. Source: RFC 9110 §12.5.1.
    init(accept: String) {
        var (open, plain) = (0, 0)
        for member in accept.lowercased().split(separator: ",").prefix(32).compactMap(WeightedMember.init) {
            let versions = member.parameters.filter { $0.hasPrefix("version=") }
                .map { $0.dropFirst(8).filter { $0 != "\"" } }
            switch member.value {
            case "application/openmetrics-text" where versions.allSatisfy { $0.isEmpty || $0 == "1.0.0" }:
                open = max(open, member.weight)
            case "text/plain", "text/*", "*/*": plain = max(plain, member.weight)
            default: break
            }
        }
        self = open > 0 && open >= plain ? .openMetrics : .prometheus
    }
}

/// A page of metrics while it is written.
struct PrometheusExposition {
    enum Kind: String {
        case counter, gauge, histogram
        /// Labels about the process itself; a gauge of 1 where the format has no such kind.
        case info
    }

    typealias Labels = [(name: String, value: String)]

    let format: MetricsFormat
    private(set) var text = ""
    /// Seconds, with the digits that the buckets need.
    private static let bounds = DurationHistogram.bounds.map { seconds($0) }

    init(_ format: MetricsFormat = .prometheus) { self.format = format }

    /// A metric; its samples follow. A counter's name ends in `_total` and that of an info in `_info`, which
    /// OpenMetrics takes for a part of the samples' names alone. The unit is the name's last part.
    mutating func describe(_ name: String, kind: Kind, help: String) {
        guard format == .openMetrics else {
            let kind = kind == .info ? .gauge : kind
            return text += "# HELP \(name) \(help)\n# TYPE \(name) \(kind.rawValue)\n"
        }
        var family = name
        for (ending, of) in [("_total", Kind.counter), ("_info", .info)]
        where of == kind && name.hasSuffix(ending) { family.removeLast(ending.utf8.count) }
        text += "# HELP \(family) \(help)\n# TYPE \(family) \(kind.rawValue)\n"
        for unit in ["seconds", "bytes"] where family.hasSuffix("_\(unit)") {
            text += "# UNIT \(family) \(unit)\n"
        }
    }

    mutating func sample(_ name: String, labels: Labels, value: some BinaryInteger) {
        write(name, labels: labels, value: "\(value)")
    }

    mutating func sample(_ name: String, labels: Labels, value: Double) {
        write(name, labels: labels, value: "\(value)")
    }

    /// The samples of a histogram of durations, in seconds.
    mutating func sample(_ name: String, labels: Labels, durations: DurationHistogram.Snapshot) {
        var count: UInt64 = 0
        for (bound, own) in zip(PrometheusExposition.bounds, durations.counts) {
            count &+= own
            write("\(name)_bucket", labels: labels + [("le", bound)], value: "\(count)")
        }
        // The sum of the buckets, so that the page agrees with itself while others count.
        count &+= durations.counts.last ?? 0
        write("\(name)_bucket", labels: labels + [("le", "+Inf")], value: "\(count)")
        write("\(name)_sum", labels: labels, value: PrometheusExposition.seconds(durations.sum))
        write("\(name)_count", labels: labels, value: "\(count)")
    }

    /// A metric with a single sample.
    mutating func add(_ name: String, kind: Kind, help: String, value: some BinaryInteger) {
        describe(name, kind: kind, help: help)
        sample(name, labels: [], value: value)
    }

    /// The same for a number that is not whole.
    mutating func add(_ name: String, kind: Kind, help: String, value: Double) {
        describe(name, kind: kind, help: help)
        sample(name, labels: [], value: value)
    }

    /// The last line of a page.
    mutating func end() { if format == .openMetrics { text += "# EOF\n" } }

    private mutating func write(_ name: String, labels: Labels, value: String) {
        text += name
        if !labels.isEmpty {
            let pairs = labels.map { "\($0.name)=\"\(PrometheusExposition.escaped($0.value))\"" }
            text += "{\(pairs.joined(separator: ","))}"
        }
        text += " \(value)\n"
    }

    /// Nanoseconds as seconds: `0.0025`, and `1.0` for a whole number, as OpenMetrics wants its bounds.
    static func seconds(_ nanoseconds: UInt64) -> String {
        let digits = String(nanoseconds % 1_000_000_000)
        var fraction = String(repeating: "0", count: 9 - digits.utf8.count) + digits
        while fraction.utf8.count > 1, fraction.last == "0" { fraction.removeLast() }
        return "\(nanoseconds / 1_000_000_000).\(fraction)"
    }

    private static func escaped(_ text: String) -> String {
        var escaped = ""
        for character in text.unicodeScalars {
            switch character {
            case "\\": escaped += "\\\\"
            case "\"": escaped += "\\\""
            case "\n": escaped += "\\n"
            default: escaped.unicodeScalars.append(character)
            }
        }
        return escaped
    }
}
