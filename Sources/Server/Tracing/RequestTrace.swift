import CountersignWire
import Synchronization

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

/// How many traces are sampled because their callers ask for it: a token bucket for all loops.
final class TraceBudget: Sendable {
    /// Seconds of the rate that may be used at once.
    static let burstSeconds = 10

    /// When the budget will be full, in nanoseconds.
    private let fullAt = Atomic<UInt64>(0)

    /// Whether one more trace may be sampled; if so, counts it. `now` is in nanoseconds of a monotonic clock.
    func take(perSecond rate: Int, at now: UInt64) -> Bool {
        guard rate > 0 else { return false }
        let interval = 1_000_000_000 / UInt64(rate)
        let latest = now + UInt64(TraceBudget.burstSeconds) * 1_000_000_000
        var seen = fullAt.load(ordering: .relaxed)
        while true {
            let next = max(min(seen, latest), now) + interval
            guard next <= latest else { return false }
            let (isDone, current) = fullAt.compareExchange(
                expected: seen, desired: next, ordering: .relaxed)
            if isDone { return true }
            seen = current
        }
    }
}
