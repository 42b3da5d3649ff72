import CountersignGate
import CountersignHTTP
import CountersignSchemes
import CountersignWire

/// Continues or begins the traces of one loop's requests, and hands the spans of those that are sampled to
/// the exporter. Confined to its loop.
///
/// Without an exporter and with ``TraceSettings/ContextRule/continue`` a request costs nothing: its context
/// goes on as it came, and is parsed only for a log line or a refusal.
final class LoopTracer {
    var rules: TraceRules
    private let exporter: SpanExporter?
    private let budget: TraceBudget
    private var generator: SplitMix64

    /// All loops share one `budget`.
    init(
        _ rules: TraceRules, exportingTo exporter: SpanExporter?, budget: TraceBudget = TraceBudget(),
        seed: UInt64
    ) {
        self.rules = rules
        self.exporter = exporter
        self.budget = budget
        generator = SplitMix64(seed: seed)
    }

    /// Whether requests have a context of the gateway's own.
    var isActive: Bool { exporter != nil || rules.rule == .restart }

    /// Replaces the context that `request` goes on with, if ``isActive``. `party` is nil for a caller that
    /// has proved nothing.
    func forward(
        _ request: borrowing Request, of event: RequestEvent, by party: VerifiedParty?,
        as forwarding: inout ForwardedRequest
    ) {
        begin(event, request: request, by: party)
        guard let trace = event.trace else { return }
        event.trace?.forwarded = RequestEvent.nanoseconds()
        for index in request.fields.indices where isReplaced(request.fields[index], of: request) {
            forwarding.fields.remove(index)
        }
        forwarding.added.append(contentsOf: "traceparent: \(trace.forwardedContext.fieldValue)\r\n".utf8)
    }

    /// Whether the gateway forwards another value of the field, or none. A new trace has nothing in common
    /// with the caller's; a vendor's part of the state (W3C Trace Context §3.3) is for the parent that is
    /// replaced, but names it for a vendor that recognises the trace.
    private func isReplaced(_ field: Request.Field, of request: borrowing Request) -> Bool {
        if field.known == .traceparent { return true }
        guard rules.rule == .restart else { return false }
        return field.known == .tracestate || field.known == .xRequestID
            || request.matches(field.name, text: "baggage")
    }

    /// Gives the request its place in a trace, once, if ``isActive``.
    ///
    /// A caller that has proved nothing cannot decide that its trace is recorded: such callers could fill the
    /// queue of spans. A caller that has proved something can do so within its share of a budget, because a
    /// release key is in every copy of the app.
    func begin(_ event: RequestEvent, request: borrowing Request, by party: VerifiedParty?) {
        guard isActive, event.trace == nil else { return }
        let context = rules.rule == .continue ? TraceContext(request) : nil
        let isDrawn = rules.sample == 1 || generator.next() % UInt64(rules.sample) == 0
        event.trace = RequestTrace(
            id: context?.trace ?? TraceID(using: &generator), caller: context?.parent,
            server: SpanID(using: &generator), client: SpanID(using: &generator),
            isSampled: isDrawn || context?.isSampled == true && isSampled(for: party))
    }

    /// Whether a caller may have its trace sampled.
    private func isSampled(for party: VerifiedParty?) -> Bool {
        guard let party else { return false }
        return budget.take(perSecond: rules.callers, for: party, at: RequestEvent.nanoseconds())
    }

    /// The trace that a log line or a refusal names; nil for a request without one.
    func traceID(of event: RequestEvent, request: borrowing Request) -> TraceID? {
        if let trace = event.trace { return trace.id }
        return rules.rule == .continue ? TraceContext(request)?.trace : nil
    }

    /// Reports the spans of a request that has ended, if its trace is sampled. `client` is its client's
    /// address, and `backend` the host that the request went to.
    func end(
        _ event: RequestEvent, on exchange: any Exchange, after judgement: Judgement, client: NetworkAddress?,
        backend: String?
    ) {
        guard let exporter else { return }
        let request = event.original?.request ?? exchange.request
        let party = event.verifiedParty(of: exchange, after: judgement)
        begin(event, request: request, by: party)
        guard let trace = event.trace, trace.isSampled else { return }
        let builder = TraceSpanBuilder(
            trace: trace, event: event, request: request, exchange: exchange,
            release: event.caller?.release ?? judgement.provenRelease)
        exporter.add(
            builder.spans(client: client?.text ?? exchange.peer, backend: backend), isProven: party != nil)
    }
}
