import CountersignThreads
import CountersignTransport
import CountersignTrust
import CountersignWire
import Glibc

/// Sends spans to a collector, by OTLP over HTTP with JSON. No request waits for it.
///
/// Bounded: at most ``mostWaiting`` spans wait, and further ones are dropped and counted. A batch that the
/// collector does not take now is sent again a few times, with a pause that doubles. Source: OTLP 1.x,
/// "OTLP/HTTP"; docs/decisions/0085-tracing.md.
final class SpanExporter: Sendable {
    /// What became of the spans since the process began.
    struct Figures: Sendable, Equatable {
        /// The collector has acknowledged them.
        var exported: UInt64 = 0
        /// They had no place in the queue.
        var overflowed: UInt64 = 0
        /// The collector was not reached, or did not take them in time.
        var undelivered: UInt64 = 0
        /// The collector has refused them.
        var rejected: UInt64 = 0
    }

    private struct Queue {
        var waiting: [TraceSpan] = []
        var isStopping = false
        var hasEnded = false
        var figures = Figures()
    }

    static let mostWaiting = 2_048
    /// Of these, spans of requests that have proved nothing: strangers leave room for the others.
    static let mostUnproven = 1_024
    static let batchSize = 512
    private static let attempts = 5
    /// How long spans gather before they are sent, unless a batch is full.
    private static let gatheringMilliseconds = 500
    /// The part of a pause after which the exporter looks whether it is to stop.
    private static let stepMilliseconds = 100
    private static let mostPauseSeconds = 60
    private static let mostResponseBytes = 64 << 10

    private let collector: TraceCollector
    private let fields: [HeaderField]
    private let transport: any RequestTransport
    private let note: @Sendable (String) -> Void
    private let queue = Monitor(Queue())

    /// Starts to send. `note` receives a line when the collector begins to fail, and when it takes spans
    /// again.
    init(
        to collector: TraceCollector, fields: [HeaderField], over transport: any RequestTransport,
        note: @escaping @Sendable (String) -> Void
    ) {
        self.collector = collector
        self.fields = fields
        self.transport = transport
        self.note = note
        Task.detached(priority: .utility) { await self.run() }
    }

    /// Nil where the settings name no collector.
    convenience init?(_ settings: TraceSettings, log: EventLog?) throws(OperationalError) {
        guard let collector = settings.collector else { return nil }
        var options = TransportOptions()
        options.concurrentRequests = 1
        options.connectTimeout = .within(.seconds(5))
        options.totalTimeout = .within(.seconds(10))
        let transport: HTTPTransport
        do throws(TransportError) {
            transport = try HTTPTransport(trust: .system, options: options)
        } catch {
            throw OperationalError(.failed, message: "--trace-export: \(error)")
        }
        self.init(to: collector, fields: try settings.readFields(), over: transport) {
            log?.note(subject: "traces", message: $0)
        }
    }

    var figures: Figures { queue.with { $0.figures } }

    /// The number of spans that wait.
    var waiting: Int { queue.with { $0.waiting.count } }

    /// Takes the spans of one request, of a proven caller or not. May be called on any thread, and does not
    /// wait.
    func add(_ spans: [TraceSpan], isProven: Bool) {
        let most = isProven ? SpanExporter.mostWaiting : SpanExporter.mostUnproven
        queue.with { queue in
            guard queue.waiting.count + spans.count <= most, !queue.isStopping else {
                queue.figures.overflowed += UInt64(spans.count)
                return
            }
            queue.waiting += spans
        }
    }

    /// Sends what waits, once, and waits for that at most `milliseconds`.
    func stop(milliseconds: Int = 2_000) {
        queue.with { $0.isStopping = true }
        queue.wait(milliseconds: milliseconds) { $0.hasEnded ? () : nil }
    }

    // MARK: Sending

    private func run() async {
        while true {
            await gather()
            let (batch, isLast) = queue.with { queue in
                let batch = Array(queue.waiting.prefix(SpanExporter.batchSize))
                queue.waiting.removeFirst(batch.count)
                return (batch, queue.isStopping && queue.waiting.isEmpty)
            }
            if !batch.isEmpty { await send(batch) }
            guard !isLast else { break }
        }
        queue.with { $0.hasEnded = true }
        queue.wakeAll()
    }

    /// Returns when a batch is full, or when spans have had time to gather.
    private func gather() async {
        var remaining = SpanExporter.gatheringMilliseconds
        while remaining > 0, !isStopping, waiting < SpanExporter.batchSize {
            await SpanExporter.pause(milliseconds: SpanExporter.stepMilliseconds)
            remaining -= SpanExporter.stepMilliseconds
        }
    }

    private var isStopping: Bool { queue.with { $0.isStopping } }

    private func send(_ batch: [TraceSpan]) async {
        let body = SpanExporter.document(of: batch)
        var pauseSeconds = 1
        for attempt in 1...SpanExporter.attempts {
            switch await post(body) {
            case .accepted(let rejected):
                let rejected = min(rejected, UInt64(batch.count))
                count {
                    $0.exported += UInt64(batch.count) - rejected
                    $0.rejected += rejected
                }
                return report(nil)
            case .refused(let reason):
                count { $0.rejected += UInt64(batch.count) }
                return report(reason)
            case .later(let reason, let seconds):
                report(reason)
                guard attempt < SpanExporter.attempts, !isStopping else {
                    return count { $0.undelivered += UInt64(batch.count) }
                }
                await wait(seconds: min(seconds ?? pauseSeconds, SpanExporter.mostPauseSeconds))
                pauseSeconds *= 2
            }
        }
    }

    private enum Answer {
        /// The collector has taken all but so many.
        case accepted(rejected: UInt64)
        case refused(String)
        /// The batch may be sent again, after so many seconds if the collector names a time.
        case later(String, seconds: Int?)
    }

    private func post(_ body: [UInt8]) async -> Answer {
        let request = OutgoingRequest(
            "POST", origin: collector.origin, target: collector.path,
            fields: [
                HeaderField("Content-Type", value: "application/json"),
                HeaderField("User-Agent", value: "countersign/\(Product.version)"),
            ] + fields, body: .bytes(body))
        do throws(TransportError) {
            let response = try await transport.send(request)
            let text = try await response.body.collect(upTo: SpanExporter.mostResponseBytes)
            switch response.status {
            case 200...299: return .accepted(rejected: SpanExporter.rejected(in: text))
            case 429, 502, 503, 504:
                let seconds = response.value(of: "retry-after").flatMap {
                    Int(String(decoding: $0, as: UTF8.self))
                }
                return .later("it answers \(response.status)", seconds: seconds.map { max($0, 1) })
            default: return .refused("it answers \(response.status)")
            }
        } catch {
            return .later("\(error)", seconds: nil)
        }
    }

    /// The number of spans that a response says were not taken. Source: OTLP 1.x, "Partial Success".
    private static func rejected(in body: [UInt8]) -> UInt64 {
        guard let document = try? JSONReader.read(body),
            let value = document.root["partialSuccess"]?["rejectedSpans"]
        else { return 0 }
        let text = value.string ?? document.text(of: value)
        return UInt64(text) ?? 0
    }

    private func count(_ change: (inout Figures) -> Void) { queue.with { change(&$0.figures) } }

    /// Whether the last line was about a failure.
    private let isFailing = Locked(false)

    /// Notes a change from or to failing. `reason` is nil where the collector takes spans.
    private func report(_ reason: String?) {
        let wasFailing = isFailing.with { isFailing in
            defer { isFailing = reason != nil }
            return isFailing
        }
        if let reason, !wasFailing {
            note("\(collector.text): spans are not delivered: \(reason)")
        } else if reason == nil, wasFailing {
            note("\(collector.text): spans are delivered again")
        }
    }

    private func wait(seconds: Int) async {
        var remaining = seconds * 1_000
        while remaining > 0, !isStopping {
            await SpanExporter.pause(milliseconds: SpanExporter.stepMilliseconds)
            remaining -= SpanExporter.stepMilliseconds
        }
    }

    private static func pause(milliseconds: Int) async {
        try? await Task.sleep(for: .milliseconds(milliseconds))
    }

    /// An `ExportTraceServiceRequest`.
    static func document(of spans: [TraceSpan]) -> [UInt8] {
        let document: JSONValue = [
            "resourceSpans": [
                [
                    "resource": [
                        "attributes": TraceSpan.json(of: [
                            ("service.name", "countersign"),
                            ("service.version", .string(Product.version)),
                        ])
                    ],
                    "scopeSpans": [
                        [
                            "scope": ["name": "countersign", "version": .string(Product.version)],
                            "spans": .array(spans.map(\.json)),
                        ]
                    ],
                ]
            ]
        ]
        return document.bytes
    }
}
