import CountersignWire

/// Where the body of the request being read stands, and how long its sender may still keep us waiting.
struct BodyReader {
    private enum State {
        case sized(remaining: Int)
        case chunked(ChunkedDecoder)
        case atEnd
    }

    private var state = State.atEnd
    /// Seconds that may still pass in waiting for the sender: some to begin with, and one more for each 32 KiB that
    /// came. The time that we make the sender wait is not counted.
    private(set) var allowance = 0
    /// The body was cut or is not one: what follows on the connection means nothing.
    var isUnreadable = false

    private static let bytesPerSecond = 32 << 10

    init() {}

    init(_ framing: Request.Framing, allowance: Int) {
        self.allowance = allowance
        state =
            switch framing {
            case .none, .length(0): .atEnd
            case .length(let length): .sized(remaining: length)
            case .chunked: .chunked(ChunkedDecoder())
            }
    }

    var isAtEnd: Bool {
        if case .atEnd = state { return !isUnreadable }
        return false
    }

    /// Leaves out a body that has arrived whole, so that the connection can go on although the handler has not read it.
    mutating func skip(in buffer: Buffer) {
        guard case .sized(let remaining) = state, remaining <= buffer.count else { return }
        buffer.take(remaining)
        state = .atEnd
    }

    mutating func didWait(seconds: Int64) { allowance = max(0, allowance - Int(seconds)) }

    /// Moves content from `buffer`, which holds the connection's input, to `target`; how much that was.
    mutating func take(from buffer: Buffer, into target: Buffer) throws(Refusal) -> Int {
        let count: Int
        switch state {
        case .atEnd: return 0
        case .sized(let remaining):
            let available = buffer.filled
            count = target.append(UnsafeRawBufferPointer(rebasing: available.prefix(remaining)))
            buffer.take(count)
            state = remaining == count ? .atEnd : .sized(remaining: remaining - count)
        case .chunked(var decoder):
            state = .atEnd
            var isOver = false
            count = try BodyReader.decode(&decoder, from: buffer, into: target, isOver: &isOver)
            if !isOver { state = .chunked(decoder) }
        }
        grant(count)
        return count
    }

    private static func decode(
        _ decoder: inout ChunkedDecoder, from buffer: Buffer, into target: Buffer, isOver: inout Bool
    ) throws(Refusal) -> Int {
        var moved = 0
        while !buffer.isEmpty, !target.isFull {
            // The decoder sees no more than fits, so that content it has given out always finds room.
            let window = min(buffer.count, target.room().count)
            switch try decoder.next(buffer.span.extracting(0..<window), from: 0) {
            case .needsMore: buffer.take(window)
            case .data(let range):
                moved += target.append(UnsafeRawBufferPointer(rebasing: buffer.filled[range]))
                buffer.take(range.upperBound)
            case .end(let consumed):
                buffer.take(consumed)
                isOver = true
                return moved
            }
        }
        return moved
    }

    private var granted = 0

    private mutating func grant(_ count: Int) {
        granted += count
        allowance += granted / BodyReader.bytesPerSecond
        granted %= BodyReader.bytesPerSecond
    }
}
