/// The id of a distributed trace: 16 bytes, not all zero. Source: W3C Trace Context §3.2.2.3.
package struct TraceID: Sendable, Hashable {
    private let high: UInt64
    private let low: UInt64

    /// Nil for the invalid id of 16 zero bytes.
    init?(high: UInt64, low: UInt64) {
        guard high | low != 0 else { return nil }
        self.high = high
        self.low = low
    }

    /// A new id. Ids are public, so a fast generator suffices.
    package init(using generator: inout SplitMix64) {
        high = generator.next()
        low = generator.next() | 1
    }

    /// 32 lower-case hexadecimal digits.
    package var text: String { TraceContext.digits(of: high) + TraceContext.digits(of: low) }
}

/// The id of one operation within a trace: 8 bytes, not all zero. Source: W3C Trace Context §3.2.2.4.
package struct SpanID: Sendable, Hashable {
    private let number: UInt64

    /// Nil for the invalid id of 8 zero bytes.
    init?(_ number: UInt64) {
        guard number != 0 else { return nil }
        self.number = number
    }

    /// A new id.
    package init(using generator: inout SplitMix64) { number = generator.next() | 1 }

    /// 16 lower-case hexadecimal digits.
    package var text: String { TraceContext.digits(of: number) }
}

/// The place of a request in a distributed trace, as the field `traceparent` states it. Source: W3C Trace
/// Context §3.2.
package struct TraceContext: Sendable, Equatable {
    package let trace: TraceID
    /// The operation that sent the request.
    package let parent: SpanID
    /// Whether the sender may have recorded the trace.
    package let isSampled: Bool

    package init(trace: TraceID, parent: SpanID, isSampled: Bool) {
        self.trace = trace
        self.parent = parent
        self.isSampled = isSampled
    }

    /// Nil for a value that is not valid, which a receiver ignores. A later version than 00 may have more
    /// parts, each after a hyphen. Source: W3C Trace Context §3.2.2, §4.3.
    package init?(traceparent value: borrowing Span<UInt8>) {
        let hyphen = UInt8(ascii: "-")
        guard value.count >= TraceContext.length, value[2] == hyphen, value[35] == hyphen,
            value[52] == hyphen,
            let version = TraceContext.number(of: value, from: 0, to: 2), version != 0xFF,
            value.count == TraceContext.length
                || version > 0 && value[TraceContext.length] == hyphen,
            let high = TraceContext.number(of: value, from: 3, to: 19),
            let low = TraceContext.number(of: value, from: 19, to: 35),
            let trace = TraceID(high: high, low: low),
            let sender = TraceContext.number(of: value, from: 36, to: 52), let parent = SpanID(sender),
            let flags = TraceContext.number(of: value, from: 53, to: 55)
        else { return nil }
        self.init(trace: trace, parent: parent, isSampled: flags & 1 == 1)
    }

    /// The context that `request` states; nil without a valid one, and where the field is repeated.
    package init?(_ request: borrowing Request) {
        guard let field = request.value(of: .traceparent) else { return nil }
        self.init(traceparent: request.head.span.extracting(field.range))
    }

    /// The value of `traceparent`, version 00.
    package var fieldValue: String { "00-\(trace.text)-\(parent.text)-\(isSampled ? "01" : "00")" }

    /// The length of a value of version 00.
    private static let length = 55

    /// The number that lower-case hexadecimal digits state, at most 16 of them.
    private static func number(of value: borrowing Span<UInt8>, from start: Int, to end: Int) -> UInt64? {
        var number: UInt64 = 0
        for index in start..<end {
            let digit = value[index]
            switch digit {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): number = number << 4 | UInt64(digit - 0x30)
            case UInt8(ascii: "a")...UInt8(ascii: "f"): number = number << 4 | UInt64(digit - 0x57)
            default: return nil
            }
        }
        return number
    }

    fileprivate static func digits(of number: UInt64) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 16 - digits.utf8.count) + digits
    }
}
