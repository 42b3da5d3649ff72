import CountersignAuthority
import CountersignWire

/// The operations of one request in its trace: the gateway's own, and the request to the backend. Confined
/// to the loop of its request.
struct RequestTrace {
    let id: TraceID
    /// The caller's operation; nil where the trace begins at the gateway.
    let caller: SpanID?
    /// The gateway's operation.
    let server: SpanID
    /// The gateway's request to the backend.
    let client: SpanID
    /// Whether the trace is recorded, here and by those that follow this gateway's decision.
    let isSampled: Bool
    /// When the request went on to the backend, in nanoseconds of the monotonic clock; nil if it did not.
    var forwarded: UInt64?

    /// The context that the backend receives.
    var forwardedContext: TraceContext { TraceContext(trace: id, parent: client, isSampled: isSampled) }
}

/// What the traces of one loop's requests follow. A reload replaces it.
struct TraceRules: Sendable, Equatable {
    var rule: TraceSettings.ContextRule
    /// One in so many traces that begin at the gateway is sampled; at least 1.
    var sample: Int
    /// The traces that are sampled each second because a caller asks for it.
    var callers: Int

    init(_ settings: TraceSettings) {
        rule = settings.rule
        sample = settings.sample
        callers = settings.callers
    }
}

/// How many traces are sampled because their callers ask for it: a token bucket for all loops, which the
/// callers share.
final class TraceBudget: Sendable {
    /// Seconds of the rate that may be used at once.
    static let burstSeconds = 10

    private let budget = Locked(VerifiedBudget(.whileOthersAsk))

    /// Whether one more trace may be sampled; if so, counts it. `now` is in nanoseconds of a monotonic clock.
    func take(perSecond rate: Int, for party: VerifiedParty, at now: UInt64) -> Bool {
        guard rate > 0 else { return false }
        let limit = RateLimit(burst: rate * TraceBudget.burstSeconds, interval: 1_000_000 / Int64(rate))
        return budget.with { $0.take(of: limit, for: party, at: Int64(clamping: now / 1_000)) }
    }
}
