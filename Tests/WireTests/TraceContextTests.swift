// Proves which values of `traceparent` are read, that all others are ignored, and that a written value is read
// as the same context.
import CountersignWire
import Testing

@Suite("Trace context")
struct TraceContextTests {
    private static let trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    private static let parent = "00f067aa0ba902b7"

    private func read(_ text: String) -> TraceContext? { TraceContext(traceparent: Array(text.utf8).span) }

    /// Nil for the state means that the value is not valid.
    @Test(
        "which values are valid",
        arguments: [
            ("00-\(trace)-\(parent)-01", true), ("00-\(trace)-\(parent)-00", false),
            // Only the lowest bit says whether the trace is recorded.
            ("00-\(trace)-\(parent)-fe", false), ("00-\(trace)-\(parent)-ff", true),
            // A later version may have more parts, each after a hyphen.
            ("cc-\(trace)-\(parent)-01", true), ("cc-\(trace)-\(parent)-01-more", true),
            ("cc-\(trace)-\(parent)-01-", true), ("cc-\(trace)-\(parent)-01.more", nil),
            ("00-\(trace)-\(parent)-01-more", nil), ("00-\(trace)-\(parent)-01-", nil),
            ("ff-\(trace)-\(parent)-01", nil), ("0g-\(trace)-\(parent)-01", nil),
            ("00-00000000000000000000000000000000-\(parent)-01", nil),
            ("00-\(trace)-0000000000000000-01", nil), ("00-\(trace.uppercased())-\(parent)-01", nil),
            ("00-\(trace)-\(parent.uppercased())-01", nil), ("00-\(trace)-\(parent)-0", nil),
            ("00-\(trace)-\(parent)", nil), ("00_\(trace)-\(parent)-01", nil),
            ("00-\(trace)_\(parent)-01", nil), ("00-\(trace)-\(parent)_01", nil), ("", nil), ("00", nil),
            (" 00-\(trace)-\(parent)-01", nil),
        ] as [(String, Bool?)])
    func values(_ text: String, isSampled: Bool?) {
        let context = read(text)
        #expect(context?.isSampled == isSampled)
        guard let context else { return }
        #expect(context.trace.text == TraceContextTests.trace)
        #expect(context.parent.text == TraceContextTests.parent)
    }

    @Test("a new context is written so that it is read as the same")
    func writtenAndRead() throws {
        var generator = SplitMix64(seed: 7)
        for turn in 0..<1_000 {
            let context = TraceContext(
                trace: TraceID(using: &generator), parent: SpanID(using: &generator),
                isSampled: turn.isMultiple(of: 2))
            #expect(try #require(read(context.fieldValue)) == context)
        }
    }

    @Test("a field that is repeated states no context")
    func repeated() {
        let value = "00-\(TraceContextTests.trace)-\(TraceContextTests.parent)-01"
        for (count, isValid) in [(0, false), (1, true), (2, false)] {
            var request = Request()
            var head: [UInt8] = []
            var fields: [Request.Field] = []
            for _ in 0..<count {
                let start = head.count
                head += "traceparent".utf8
                let middle = head.count
                head += value.utf8
                fields.append(
                    Request.Field(
                        name: ByteRange(from: start, to: middle),
                        value: ByteRange(from: middle, to: head.count)))
            }
            request.head = head
            request.fields = fields
            request.identifyFields()
            #expect((TraceContext(request) != nil) == isValid, "\(count) fields")
        }
    }
}
