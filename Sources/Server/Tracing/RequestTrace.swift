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

    init(_ settings: TraceSettings) {
        rule = settings.rule
        sample = settings.sample
    }
}
