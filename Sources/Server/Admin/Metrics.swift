import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignWire

/// What `/metrics` tells: the meter since this process began, and a few figures of the process itself.
struct Metrics: Sendable {
    let meter: Meter
    let registry: ConnectionRegistry
    let replay: ReplayFile
    let clock: any TimeSource
    /// Whole Unix seconds.
    let began: Int64

    func text() -> [UInt8] {
        var page = Exposition()
        addRequests(to: &page)
        let now = clock.now
        let use = replay.use(now: now)
        page.add("countersign_connections", .gauge, "Open client connections.", registry.current)
        page.add("countersign_held_body_bytes", .gauge, "Bytes of request bodies that are held.", registry.heldBytes)
        addEngineEvents(to: &page)
        page.add(
            "countersign_replay_entries", .gauge,
            "Requests that the replay table remembers, reckoned from a sample of it.", use.entries)
        page.add(
            "countersign_replay_capacity", .gauge, "Requests that the replay table has room for before it grows.",
            use.capacity)
        page.add("countersign_uptime_seconds", .gauge, "Seconds since the server began.", max(now - began, 0))
        page.add("process_start_time_seconds", .gauge, "When the server began, in Unix seconds.", began)
        return Array(page.text.utf8)
    }

    private func addEngineEvents(to page: inout Exposition) {
        let counters = registry.counters
        page.add(
            "countersign_connections_refused_by_address_total", .counter,
            "Connections that were closed because their address had as many as it may.",
            counters.count(of: .refusedByAddress))
        page.add(
            "countersign_connections_evicted_idle_total", .counter, "Connections that gave way to new ones.",
            counters.count(of: .evictedIdle))
        page.add(
            "countersign_turns_deferred_total", .counter,
            "Times that a connection waited, because its address had used its share of a loop's turn.",
            counters.count(of: .deferredTurn))
        page.add(
            "countersign_slow_readers_cut_total", .counter,
            "Answers that were cut because their client took them too slowly.", counters.count(of: .cutSlowReader))
        page.add(
            "countersign_bodies_refused_total", .counter,
            "Bodies that were not held, because their sender or all together held as much as they may.",
            counters.count(of: .refusedBody))
    }

    private func addRequests(to page: inout Exposition) {
        let name = "countersign_requests_total"
        page.describe(
            name, .counter,
            "Requests by what the gate said of them. A refused one only claims its release; without one, it names none."
        )
        let rows = meter.totals().map { (labels: Metrics.labels(of: $0.key), count: $0.value) }
            .sorted { $0.labels.map(\.value).lexicographicallyPrecedes($1.labels.map(\.value)) }
        for row in rows { page.sample(name, row.labels, row.count) }
    }

    /// `key` is empty for what was not let in by its signature: such a request has proved no key.
    private static func labels(of subject: MeterEntry.Subject) -> [(name: String, value: String)] {
        let (key, outcome) =
            switch subject.outcome {
            case .accepted: ("current", "accepted")
            case .acceptedUnderNextKey: ("next", "accepted")
            case .acceptedByTicket: ("ticket", "accepted")
            case .open: ("", "open")
            case .observed(let code): ("", "would-refuse-\(code.rawValue)")
            case .refused(let code): ("", code.rawValue)
            }
        return [
            ("app", subject.app), ("release", subject.release), ("scheme", subject.scheme), ("key", key),
            ("outcome", outcome),
        ]
    }
}
