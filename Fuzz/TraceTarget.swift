// The field traceparent: a value that is read is written as one that is read as the same context, and keeps its
// first 55 bytes but for the version and the flags.
import CountersignWire

/// The input is the field's value.
@Sendable func fuzzTraceContext(_ bytes: Span<UInt8>) {
    guard let context = TraceContext(traceparent: bytes) else { return }
    let written = Array(context.fieldValue.utf8)
    precondition(written.count == 55 && bytes.count >= 55)
    for index in 2..<53 { precondition(written[index] == bytes[index]) }
    precondition(TraceContext(traceparent: written.span) == context)
}
