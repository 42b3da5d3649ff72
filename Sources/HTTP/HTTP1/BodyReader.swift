import CountersignWire

/// The read position in the body of the current request, and the time that its sender has left.
struct BodyReader {
    private enum State {
        case sized(remaining: Int)
        case chunked(ChunkedDecoder)
        case atEnd
    }

    private var state = State.atEnd
    /// Seconds for which the gateway may still wait for the sender: an initial amount, plus one for each 32
    /// KiB received. Time in which the gateway makes the sender wait does not count.
    private(set) var allowance = 0
    /// Whether the body was cut short or is malformed, so that further input on the connection cannot be
    /// interpreted.
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

    /// Skips a body that has arrived whole, so that the connection can stay open although the handler has
    /// not read it.
    mutating func skip(in buffer: Buffer) {
        guard case .sized(let remaining) = state, remaining <= buffer.count else { return }
        buffer.take(remaining)
        state = .atEnd
    }

    mutating func didWait(seconds: Int64) { allowance = max(0, allowance - Int(seconds)) }

    /// Moves content from `buffer`, which holds the connection's input, to `target`; returns the number of
    /// bytes.
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
            // The decoder gets no more input than `target` has room for, so that its content always fits.
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

/// Decodes the chunked transfer coding incrementally. Source: RFC 9112 §7.1.
///
/// The decoder skips chunk extensions and drops trailers, both within bounds; a trailer follows the rules
/// of a field line in a head. A size is 1 to 15 hexadecimal digits, and every line ends in CRLF.
struct ChunkedDecoder {
    enum Step: Equatable {
        /// The decoder has consumed all of the input; the body continues.
        case needsMore
        /// Content, as a range of the input; call again with the input after it.
        case data(Range<Int>)
        /// The body has ended; input after the first `consumed` bytes belongs to the next message.
        case end(consumed: Int)
    }

    private enum State {
        case size(digits: Int)
        case sizeExtension
        case sizeLineFeed
        case data
        case dataCarriageReturn
        case dataLineFeed
        case trailerStart
        case trailerName
        case trailerValue
        case trailerLineFeed
        case lastLineFeed
    }

    /// Limits on the bytes of one chunk's extensions and of all trailers.
    private static let overheadLimit = 1_024
    private static let trailerLimit = 8_192
    private static let mostTrailers = 64

    private var state = State.size(digits: 0)
    private var remaining = 0
    private var overhead = 0
    private var trailers = 0

    mutating func next(_ bytes: Span<UInt8>, from start: Int) throws(Refusal) -> Step {
        var position = start
        while position < bytes.count {
            if case .data = state {
                let count = min(remaining, bytes.count - position)
                remaining -= count
                if remaining == 0 { state = .dataCarriageReturn }
                return .data(position..<position + count)
            }
            let byte = bytes[position]
            position += 1
            if try take(byte) { return .end(consumed: position) }
        }
        return .needsMore
    }

    /// Consumes one byte that is not content; true if it is the body's last.
    private mutating func take(_ byte: UInt8) throws(Refusal) -> Bool {
        switch state {
        case .size(let digits):
            if let value = OctetClass.hexValue(byte) {
                guard digits < 15 else {
                    throw Refusal(.malformed, detail: "a chunk size has more than 15 digits")
                }
                remaining = remaining << 4 | value
                state = .size(digits: digits + 1)
            } else {
                guard digits > 0 else {
                    throw Refusal(.malformed, detail: "a chunk does not begin with its size")
                }
                overhead = 0
                switch byte {
                case OctetClass.carriageReturn: state = .sizeLineFeed
                case UInt8(ascii: ";"): state = .sizeExtension
                default:
                    throw Refusal(.malformed, detail: "a chunk size is followed by \(FieldLines.hex(byte))")
                }
            }
        case .sizeExtension:
            if byte == OctetClass.carriageReturn {
                state = .sizeLineFeed
            } else {
                try takeOverhead(byte, limit: ChunkedDecoder.overheadLimit)
            }
        case .sizeLineFeed:
            try expect(byte, toBe: OctetClass.lineFeed)
            overhead = 0
            state = remaining == 0 ? .trailerStart : .data
        case .data: break
        case .dataCarriageReturn:
            try expect(byte, toBe: OctetClass.carriageReturn)
            state = .dataLineFeed
        case .dataLineFeed:
            try expect(byte, toBe: OctetClass.lineFeed)
            state = .size(digits: 0)
        case .trailerStart:
            if byte == OctetClass.carriageReturn {
                state = .lastLineFeed
            } else {
                guard OctetClass.isToken(byte) else {
                    throw Refusal(.malformed, detail: "a trailer does not begin with a name")
                }
                guard trailers < ChunkedDecoder.mostTrailers else {
                    throw Refusal(.tooLarge, detail: "more than \(ChunkedDecoder.mostTrailers) trailers")
                }
                trailers += 1
                try takeOverhead(byte, limit: ChunkedDecoder.trailerLimit)
                state = .trailerName
            }
        case .trailerName:
            guard byte == OctetClass.colon || OctetClass.isToken(byte) else {
                throw Refusal(
                    .malformed,
                    detail: "a trailer's name is followed by \(FieldLines.hex(byte)) and not by a colon")
            }
            try takeOverhead(byte, limit: ChunkedDecoder.trailerLimit)
            if byte == OctetClass.colon { state = .trailerValue }
        case .trailerValue:
            if byte == OctetClass.carriageReturn {
                state = .trailerLineFeed
            } else {
                try takeOverhead(byte, limit: ChunkedDecoder.trailerLimit)
            }
        case .trailerLineFeed:
            try expect(byte, toBe: OctetClass.lineFeed)
            state = .trailerStart
        case .lastLineFeed:
            try expect(byte, toBe: OctetClass.lineFeed)
            return true
        }
        return false
    }

    /// Counts a skipped byte. Source of the allowed characters: RFC 9110 §5.5.
    private mutating func takeOverhead(_ byte: UInt8, limit: Int) throws(Refusal) {
        overhead += 1
        guard overhead <= limit else {
            throw Refusal(.tooLarge, detail: "chunk extensions or trailers over \(limit) bytes")
        }
        guard OctetClass.isFieldValue(byte) else {
            throw Refusal(.malformed, detail: "a chunk extension or trailer holds \(FieldLines.hex(byte))")
        }
    }

    private func expect(_ byte: UInt8, toBe expected: UInt8) throws(Refusal) {
        guard byte == expected else {
            throw Refusal(
                .malformed,
                detail: "in a chunked body \(FieldLines.hex(byte)) stands for \(FieldLines.hex(expected))")
        }
    }
}
