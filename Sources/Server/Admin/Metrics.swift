import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignReplay
import CountersignWire

/// What `/metrics` reports: the meter since this process began, and a few figures of the process itself.
struct Metrics: Sendable {
    let meter: RequestMeter
    let registry: ConnectionRegistry
    let replay: ReplayBackend
    let rows: RowAuthenticator
    /// Nil unless other machines can open the store.
    let nodes: NodeMembership?
    let drills: DrillControl
    let clock: any TimeSource
    /// When the process began, in whole Unix seconds.
    let began: Int64

    func text() -> [UInt8] {
        var page = PrometheusExposition()
        addRequests(to: &page)
        let now = clock.now
        page.add(
            "countersign_unavailable_responses_total", kind: .counter,
            help: "Responses 503 `unavailable`, also to requests whose signature was accepted.",
            value: meter.unavailableResponses)
        page.add(
            "countersign_connections", kind: .gauge, help: "Open client connections.", value: registry.current
        )
        page.add(
            "countersign_held_body_bytes", kind: .gauge, help: "Bytes of request bodies that are held.",
            value: registry.heldBytes)
        addEngineEvents(to: &page)
        addReplayGuard(to: &page, now: now)
        page.add(
            "countersign_rows_refused_total", kind: .counter,
            help: "Reads of rows that were altered in the database.", value: rows.counts.refusals)
        page.add(
            "countersign_row_findings", kind: .gauge,
            help: "Findings of the last check of all rows: anything but 0 is an alarm.",
            value: rows.counts.findings)
        if let nodes { Metrics.add(nodes, to: &page) }
        page.describe(
            "countersign_drill", kind: .gauge,
            help: "1 while `countersign drill` has the server treat this as away, otherwise 0.")
        for subject in DrillSubject.allCases {
            page.sample(
                "countersign_drill", labels: [("subject", subject.rawValue)],
                value: drills.drill(of: subject).isOn ? 1 : 0)
        }
        page.add(
            "countersign_uptime_seconds", kind: .gauge, help: "Seconds since the server began.",
            value: max(now - began, 0))
        page.add(
            "process_start_time_seconds", kind: .gauge, help: "When the server began, in Unix seconds.",
            value: began)
        return Array(page.text.utf8)
    }

    private func addReplayGuard(to page: inout PrometheusExposition, now: Int64) {
        guard let shared = replay.shared else {
            let use = replay.file.usage(now: now)
            page.add(
                "countersign_replay_entries", kind: .gauge,
                help: "Requests that the replay table remembers, reckoned from a sample of it.",
                value: use.entries)
            page.add(
                "countersign_replay_capacity", kind: .gauge,
                help: "Requests that the replay table has room for before it grows.",
                value: use.capacity)
            return
        }
        let use = shared.usage
        let (name, title) = ("countersign_replay_\(shared.kind.rawValue)", shared.kind.title)
        page.add(
            "\(name)_up", kind: .gauge,
            help: "Whether the replay guard on \(title) takes requests: 1, or 0 while they are refused.",
            value: use.failure == nil ? 1 : 0)
        page.add(
            "\(name)_epoch", kind: .gauge,
            help: "The number of the guard's epoch: it rises when \(title) may have lost entries.",
            value: use.epoch)
        page.add(
            "\(name)_floor_seconds", kind: .gauge,
            help: "Signatures made up to this Unix time are refused; 0 for no bound.", value: use.floor)
        page.add(
            "\(name)_refusals_total", kind: .counter,
            help: "Requests that were refused because \(title), or its epoch, was not there.",
            value: use.refusals)
    }

    private static func add(_ nodes: NodeMembership, to page: inout PrometheusExposition) {
        let figures = nodes.figures
        page.add(
            "countersign_node_fresh", kind: .gauge,
            help: "1 while the node's lease lasts; else it refuses requests of sessions.",
            value: nodes.lease.isFresh ? 1 : 0)
        page.add(
            "countersign_node_others", kind: .gauge, help: "Other live nodes over the same store.",
            value: figures.others)
        page.add(
            "countersign_node_change", kind: .gauge,
            help: "The number of the last change that the node follows.", value: figures.change)
        page.add(
            "countersign_node_clock_offset_milliseconds", kind: .gauge,
            help: "How far the clock is ahead of the store's.", value: figures.clockOffset)
        page.add(
            "countersign_node_missed_hints_total", kind: .counter,
            help: "Changes that were found without a notification.", value: figures.missedHints)
    }

    private func addEngineEvents(to page: inout PrometheusExposition) {
        let counters = registry.counters
        page.add(
            "countersign_connections_refused_by_address_total", kind: .counter,
            help: "Connections that were closed because their address had as many as it may.",
            value: counters.count(of: .refusedByAddress))
        page.add(
            "countersign_connections_evicted_idle_total", kind: .counter,
            help: "Connections that gave way to new ones.",
            value: counters.count(of: .evictedIdle))
        page.add(
            "countersign_turns_deferred_total", kind: .counter,
            help: "Times that a connection waited, because its address had used its share of a loop's turn.",
            value: counters.count(of: .deferredTurn))
        page.add(
            "countersign_slow_readers_cut_total", kind: .counter,
            help: "Answers that were cut because their client took them too slowly.",
            value: counters.count(of: .cutSlowReader))
        page.add(
            "countersign_bodies_refused_total", kind: .counter,
            help: "Bodies that were not held, because their sender or all together held as much as they may.",
            value: counters.count(of: .refusedBody))
    }

    private func addRequests(to page: inout PrometheusExposition) {
        let name = "countersign_requests_total"
        page.describe(
            name, kind: .counter,
            help:
                "Requests by how they ended. The release of a refused request is a claim; "
                + "it is empty for a request that names none."
        )
        let rows = meter.totals().map { (labels: Metrics.labels(of: $0.key), count: $0.value) }
            .sorted { $0.labels.map(\.value).lexicographicallyPrecedes($1.labels.map(\.value)) }
        for row in rows { page.sample(name, labels: row.labels, value: row.count) }
    }

    /// `key` is empty for a request that no signature admitted: such a request has proved no key.
    private static func labels(of subject: MeterEntry.Subject) -> [(name: String, value: String)] {
        let (key, outcome) =
            switch subject.outcome {
            case .accepted: ("current", "accepted")
            case .acceptedUnderNextKey: ("next", "accepted")
            case .acceptedByTicket: ("ticket", "accepted")
            case .open: ("", "open")
            case .observed(let code): ("", "would-refuse-\(code.rawValue)")
            case .refused(let code): ("", code.rawValue)
            case .failed(let failure): ("", failure.rawValue)
            }
        return [
            ("app", subject.app), ("release", subject.release), ("scheme", subject.scheme), ("key", key),
            ("outcome", outcome),
        ]
    }
}

/// Prometheus' text form of metrics. Source: prometheus.io, "Exposition formats", version 0.0.4.
struct PrometheusExposition {
    enum Kind: String { case counter, gauge }

    static let type = "text/plain; version=0.0.4; charset=utf-8"
    private(set) var text = ""

    /// A metric; its samples follow.
    mutating func describe(_ name: String, kind: Kind, help: String) {
        text += "# HELP \(name) \(help)\n# TYPE \(name) \(kind.rawValue)\n"
    }

    mutating func sample(_ name: String, labels: [(name: String, value: String)], value: some BinaryInteger) {
        text += name
        if !labels.isEmpty {
            let pairs = labels.map { "\($0.name)=\"\(PrometheusExposition.escaped($0.value))\"" }
            text += "{\(pairs.joined(separator: ","))}"
        }
        text += " \(value)\n"
    }

    /// A metric with a single sample.
    mutating func add(_ name: String, kind: Kind, help: String, value: some BinaryInteger) {
        describe(name, kind: kind, help: help)
        sample(name, labels: [], value: value)
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
