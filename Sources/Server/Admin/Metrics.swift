import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignReplay
import CountersignThreads
import CountersignWire
import Synchronization

/// What `/metrics` reports: the meter since this process began, and figures of the process itself.
struct Metrics: Sendable {
    /// What one loop measures of itself.
    struct Loop: Sendable {
        let lag: DurationHistogram
        /// Nil for the built-in echo.
        let pool: UpstreamPoolUsage?
    }

    let meter: RequestMeter
    let registry: ConnectionRegistry
    /// The settings, whose limits a reload may change.
    let running: RunningConfiguration
    let loops: [Loop]
    let writer: GroupWriter
    let certificate: CertificateExpiry
    let replay: ReplayBackend
    let rows: RowAuthenticator
    /// Nil unless other machines can open the store.
    let nodes: NodeMembership?
    let drills: DrillControl
    /// Nil unless spans are exported.
    let spans: SpanExporter?
    let webhooks: WebhookSender
    let keys: ReleaseKeyDirectory
    let guesses: AccountGuesses
    /// Nil unless refusals are kept on the disk.
    let refusals: RefusalStore?
    let clock: TrustedClock
    /// When the process began, in whole Unix seconds.
    let began: Int64

    func text(as format: MetricsFormat) -> [UInt8] {
        var page = PrometheusExposition(format)
        let totals = meter.totals()
        addRequests(totals, to: &page)
        addDurations(to: &page)
        addBackend(totals, to: &page)
        addAuthority(to: &page)
        let now = clock.now
        addApps(to: &page, now: now)
        page.add(
            "countersign_unavailable_responses_total", kind: .counter,
            help: "Responses 503 `unavailable`, also to requests whose signature was accepted.",
            value: meter.unavailableResponses)
        page.add(
            "countersign_clock_trusted", kind: .gauge,
            help: "0 while the clock is not trusted: refusals that depend on it are `unavailable`.",
            value: clock.trust.isTrusted ? 1 : 0)
        page.add(
            "countersign_connections", kind: .gauge, help: "Open client connections.", value: registry.current
        )
        page.add(
            "countersign_held_body_bytes", kind: .gauge, help: "Bytes of request bodies that are held.",
            value: registry.heldBytes)
        page.add(
            "countersign_held_body_limit_bytes", kind: .gauge,
            help: "The limit on bytes of request bodies that are held.",
            value: running.current.limits.heldBytes)
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
        if let spans { Metrics.add(spans, to: &page) }
        Metrics.add(webhooks, to: &page)
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
        page.describe(
            "countersign_build_info", kind: .info, help: "The version that runs, as a label; always 1.")
        page.sample("countersign_build_info", labels: [("version", Product.version)], value: 1)
        if let expiry = certificate.seconds {
            page.add(
                "countersign_certificate_expiry_timestamp_seconds", kind: .gauge,
                help: "When the listener's certificate ends, in Unix seconds.", value: expiry)
        }
        if running.current.hasOwnBackups {
            let last = try? running.current.lastBackup()
            page.add(
                "countersign_backup_last_success_timestamp_seconds", kind: .gauge,
                help: "When the last backup was made that was verified, in Unix seconds; 0 if none was.",
                value: last?.made ?? 0)
        }
        ProcessFigures().add(to: &page)
        page.end()
        return Array(page.text.utf8)
    }

    /// Suspensions by operators, by app, and accounts under attack.
    private func addApps(to page: inout PrometheusExposition, now: Int64) {
        let apps = keys.conditions(at: now).sorted { $0.key.description < $1.key.description }
        for (name, help, isOn) in [
            (
                "countersign_app_maintenance", "1 while the app is in maintenance, otherwise 0.",
                { $0.isInMaintenance }
            ),
            (
                "countersign_app_observing",
                "1 while requests that would be refused reach the app's backend, otherwise 0.",
                { $0.observingUntil != nil }
            ),
        ] as [(String, String, (AppCondition) -> Bool)] {
            page.describe(name, kind: .gauge, help: help)
            for (app, condition) in apps {
                page.sample(name, labels: [("app", app.description)], value: isOn(condition) ? 1 : 0)
            }
        }
        page.add(
            "countersign_accounts_attacked", kind: .gauge,
            help: "Accounts with at least ten failed logins, the last of them in the last hour.",
            value: guesses.attacked(at: now))
        if let refusals {
            page.add(
                "countersign_refusals_not_kept_total", kind: .counter,
                help:
                    "Refusals that the console cannot show after they left the memory: the disk was too slow "
                    + "or full, an earlier process still used the files, or the caller had used its share.",
                value: refusals.losses)
        }
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
            page.add(
                "countersign_replay_fill_ratio", kind: .gauge,
                help: "The part of the replay table that is in use: it grows when it is full.",
                value: Double(use.entries) / Double(max(use.capacity, 1)))
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

    private static func add(_ spans: SpanExporter, to page: inout PrometheusExposition) {
        let figures = spans.figures
        page.describe(
            "countersign_trace_spans_total", kind: .counter,
            help: "Spans of sampled requests, by what became of them.")
        for (outcome, count) in [
            ("exported", figures.exported), ("queue-full", figures.overflowed),
            ("undelivered", figures.undelivered), ("rejected", figures.rejected),
        ] {
            page.sample("countersign_trace_spans_total", labels: [("outcome", outcome)], value: count)
        }
        page.add(
            "countersign_trace_spans_waiting", kind: .gauge, help: "Spans that wait to be exported.",
            value: spans.waiting)
    }

    private static func add(_ webhooks: WebhookSender, to page: inout PrometheusExposition) {
        let (figures, counts) = (webhooks.figures, webhooks.counts)
        page.describe(
            "countersign_webhook_attempts_total", kind: .counter,
            help: "Attempts to deliver an event to an endpoint, by what became of them.")
        for (outcome, count) in [
            ("delivered", figures.delivered), ("failed", figures.failed), ("given-up", figures.givenUp),
        ] {
            page.sample("countersign_webhook_attempts_total", labels: [("outcome", outcome)], value: count)
        }
        page.add(
            "countersign_webhook_waiting", kind: .gauge, help: "Deliveries that wait in the outbox.",
            value: counts.waiting)
        page.add(
            "countersign_webhook_dead", kind: .gauge, help: "Deliveries that were given up, and are kept.",
            value: counts.dead)
        page.add(
            "countersign_webhook_oldest_timestamp_seconds", kind: .gauge,
            help: "When the oldest event that waits happened, in Unix seconds; 0 if none waits.",
            value: counts.oldest ?? 0)
        page.describe(
            "countersign_webhook_dropped_total", kind: .counter,
            help: "Deliveries that were dropped because the share of their endpoint was full.")
        for drops in webhooks.dropped {
            page.sample(
                "countersign_webhook_dropped_total", labels: [("webhook", drops.endpoint)], value: drops.count
            )
        }
    }

    private static func add(_ nodes: NodeMembership, to page: inout PrometheusExposition) {
        let figures = nodes.figures
        page.add(
            "countersign_node_fresh", kind: .gauge,
            help: "1 while the node's lease lasts; else it refuses requests.",
            value: nodes.lease.isFresh ? 1 : 0)
        page.add(
            "countersign_node_others", kind: .gauge, help: "Other live nodes over the same store.",
            value: figures.others)
        page.add(
            "countersign_node_change", kind: .gauge,
            help: "The number of the last change that the node follows.", value: figures.change)
        page.add(
            "countersign_node_clock_offset_seconds", kind: .gauge,
            help: "How far the clock is ahead of the store's.", value: Double(figures.clockOffset) / 1_000)
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

    private func addRequests(_ totals: [MeterEntry.Subject: UInt64], to page: inout PrometheusExposition) {
        let name = "countersign_requests_total"
        page.describe(
            name, kind: .counter,
            help:
                "Requests by how they ended. The release of a refused request is a claim; "
                + "it is empty for a request that names none."
        )
        Metrics.add(totals.filter { $0.key.outcome.isEnd }, as: name, to: &page) { subject in
            Metrics.labels(of: subject)
        }
        Metrics.addResponses(
            totals.filter { if case .answered = $0.key.outcome { true } else { false } },
            as: "countersign_upstream_responses_total",
            help: "Responses of the backend, by the class of their status.", to: &page)
        Metrics.addResponses(
            totals.filter { if case .repeated = $0.key.outcome { true } else { false } },
            as: "countersign_repeated_responses_total",
            help: "Stored responses of the backend that were delivered again, by the class of their status.",
            to: &page)
    }

    private static func addResponses(
        _ totals: [MeterEntry.Subject: UInt64], as name: String, help: String,
        to page: inout PrometheusExposition
    ) {
        page.describe(name, kind: .counter, help: help)
        add(totals, as: name, to: &page) { subject in
            [
                ("app", subject.app), ("release", subject.release), ("scheme", subject.scheme),
                ("class", subject.outcome.label),
            ]
        }
    }

    private static func add(
        _ totals: [MeterEntry.Subject: UInt64], as name: String, to page: inout PrometheusExposition,
        labels: (MeterEntry.Subject) -> PrometheusExposition.Labels
    ) {
        let rows = totals.map { (labels: labels($0.key), count: $0.value) }
            .sorted { $0.labels.map(\.value).lexicographicallyPrecedes($1.labels.map(\.value)) }
        for row in rows { page.sample(name, labels: row.labels, value: row.count) }
    }

    private func addDurations(to page: inout PrometheusExposition) {
        let durations = meter.durations()
        for (span, name, help) in [
            (
                DurationSeries.Span.request, "countersign_request_duration_seconds",
                "From the start of a request's judgement until its response was handed to the socket."
            ),
            (
                .upstream, "countersign_upstream_duration_seconds",
                "From the first byte sent to the backend until the head of its response, or its failure."
            ),
        ] {
            page.describe(name, kind: .histogram, help: help)
            let rows = durations.filter { $0.key.span == span }.sorted {
                ($0.key.app, $0.key.scheme, $0.key.outcome) < ($1.key.app, $1.key.scheme, $1.key.outcome)
            }
            for (subject, snapshot) in rows {
                page.sample(
                    name,
                    labels: [
                        ("app", subject.app), ("scheme", subject.scheme), ("outcome", subject.outcome),
                    ], durations: snapshot)
            }
        }
        page.add(
            "countersign_requests_in_flight", kind: .gauge, help: "Requests that are being served.",
            value: meter.requestsInFlight)
        page.describe(
            "countersign_loop_lag_seconds", kind: .histogram,
            help: "How late each event loop's tick of a second was.")
        page.sample(
            "countersign_loop_lag_seconds", labels: [],
            durations: loops.reduce(into: DurationHistogram.Snapshot()) { $0.add($1.lag.snapshot) })
    }

    /// The outcomes of the meter without their releases: each kind is there from the start with 0, so that
    /// its first increase is seen by `rate`.
    private func addBackend(
        _ totals: [MeterEntry.Subject: UInt64], to page: inout PrometheusExposition
    ) {
        var failures = [UInt64](repeating: 0, count: DeliveryFailure.allCases.count)
        var refusals = [UInt64](repeating: 0, count: Refusal.Code.allCases.count)
        for (subject, count) in totals {
            switch subject.outcome {
            case .failed(let failure): failures[failure.ordinal] += count
            case .refused(let code): refusals[code.ordinal] += count
            default: break
            }
        }
        page.describe(
            "countersign_upstream_errors_total", kind: .counter,
            help: "Admitted requests that failed at the backend, by kind.")
        for kind in DeliveryFailure.allCases where kind.isCausedByBackend {
            page.sample(
                "countersign_upstream_errors_total", labels: [("kind", kind.rawValue)],
                value: failures[kind.ordinal])
        }
        page.describe(
            "countersign_refusals_total", kind: .counter, help: "Refused requests, by the refusal's code.")
        for code in Refusal.Code.allCases where !code.isCountedAsDeliveryFailure {
            page.sample(
                "countersign_refusals_total", labels: [("code", code.rawValue)], value: refusals[code.ordinal]
            )
        }
        let pools = loops.compactMap(\.pool?.figures)
        guard !pools.isEmpty else { return }
        let (open, idle) = (pools.reduce(0) { $0 + $1.open }, pools.reduce(0) { $0 + $1.idle })
        page.describe(
            "countersign_upstream_connections", kind: .gauge,
            help: "Connections to the backend, as of the last second.")
        for (state, count) in [("in-use", open - idle), ("idle", idle)] {
            page.sample("countersign_upstream_connections", labels: [("state", state)], value: count)
        }
        page.add(
            "countersign_upstream_connections_limit", kind: .gauge,
            help: "The limit on connections to the backend.",
            value: running.current.upstreamSettings.limits.connections)
        page.add(
            "countersign_upstream_waiting", kind: .gauge,
            help: "Requests that wait for a connection to the backend, as of the last second.",
            value: pools.reduce(0) { $0 + $1.waiting })
    }

    private func addAuthority(to page: inout PrometheusExposition) {
        let counts = meter.operations.counts.sorted { $0.key.outcome < $1.key.outcome }
        for (operation, name, help) in [
            (AuthorityOperation.login, "countersign_logins_total", "Logins, by outcome."),
            (.refresh, "countersign_refreshes_total", "Refreshes of sessions and tokens, by outcome."),
        ] {
            page.describe(name, kind: .counter, help: help)
            for (subject, count) in counts where subject.operation == operation {
                page.sample(name, labels: [("outcome", subject.outcome)], value: count)
            }
        }
        page.add(
            "countersign_login_starts_total", kind: .counter,
            help: "Logins that have begun with their first of two requests.",
            value: counts.reduce(0) { $1.key.operation == .loginStart ? $0 + $1.value : $0 })
        page.describe(
            "countersign_store_write_duration_seconds", kind: .histogram,
            help:
                "The time of each transaction of the store, with the changes that it makes durable together.")
        page.sample(
            "countersign_store_write_duration_seconds", labels: [],
            durations: writer.figures.durations.snapshot)
        page.add(
            "countersign_store_write_failures_total", kind: .counter,
            help: "Transactions of the store that failed.", value: writer.figures.failures)
        page.add(
            "countersign_store_queue", kind: .gauge, help: "Changes that wait for the store.",
            value: writer.waiting)
    }

    /// `key` is empty for a request that no signature admitted: such a request has proved no key.
    private static func labels(of subject: MeterEntry.Subject) -> PrometheusExposition.Labels {
        let key =
            switch subject.outcome {
            case .accepted: "current"
            case .acceptedUnderNextKey: "next"
            case .acceptedByTicket: "ticket"
            case .open, .observed, .refused, .failed, .answered, .repeated: ""
            }
        return [
            ("app", subject.app), ("release", subject.release), ("scheme", subject.scheme), ("key", key),
            ("outcome", subject.outcome.label),
        ]
    }
}

extension Refusal.Code {
    /// Whether such a refusal is counted as a ``DeliveryFailure``.
    fileprivate var isCountedAsDeliveryFailure: Bool { self == .upstreamFailed || self == .upstreamTimeout }
}

/// When the listener's certificate expires; changes as it is loaded again.
final class CertificateExpiry: Sendable {
    private let value = Atomic<Int64>(0)

    /// Whole Unix seconds; nil without TLS.
    var seconds: Int64? {
        let seconds = value.load(ordering: .relaxed)
        return seconds == 0 ? nil : seconds
    }

    func read(_ context: TLSContext?) { value.store(context?.expiry ?? 0, ordering: .relaxed) }
}
