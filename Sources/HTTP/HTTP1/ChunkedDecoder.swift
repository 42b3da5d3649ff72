import CountersignWire

/// Takes the chunked coding off a body, as its bytes come. Source: RFC 9112 §7.1.
///
/// Chunk extensions are read past and trailers dropped, both within bounds; a trailer is a field line by the same rules
/// as in a head. A size is 1 to 15 hexadecimal digits, and every line ends in CRLF.
struct ChunkedDecoder {
    enum Step: Equatable {
        /// All of the input was taken; there is more to come.
        case needsMore
        /// Content, as a range of the input; call again with what follows it.
        case data(Range<Int>)
        /// The body ended; what follows `consumed` belongs to the next message.
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

    /// Bytes of one chunk's extensions, and of all trailers.
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

    /// Moves on by one byte that is not content; true behind the last one.
    private mutating func take(_ byte: UInt8) throws(Refusal) -> Bool {
        switch state {
        case .size(let digits):
            if let value = Octet.hexValue(byte) {
                guard digits < 15 else { throw Refusal(.malformed, "a chunk size has more than 15 digits") }
                remaining = remaining << 4 | value
                state = .size(digits: digits + 1)
            } else {
                guard digits > 0 else { throw Refusal(.malformed, "a chunk does not begin with its size") }
                overhead = 0
                switch byte {
                case Octet.carriageReturn: state = .sizeLineFeed
                case UInt8(ascii: ";"): state = .sizeExtension
                default: throw Refusal(.malformed, "a chunk size is followed by \(FieldLines.hex(byte))")
                }
            }
        case .sizeExtension:
            if byte == Octet.carriageReturn {
                state = .sizeLineFeed
            } else {
                try takeOverhead(byte, ChunkedDecoder.overheadLimit)
            }
        case .sizeLineFeed:
            try expect(byte, Octet.lineFeed)
            overhead = 0
            state = remaining == 0 ? .trailerStart : .data
        case .data: break
        case .dataCarriageReturn:
            try expect(byte, Octet.carriageReturn)
            state = .dataLineFeed
        case .dataLineFeed:
            try expect(byte, Octet.lineFeed)
            state = .size(digits: 0)
        case .trailerStart:
            if byte == Octet.carriageReturn {
                state = .lastLineFeed
            } else {
                guard Octet.isToken(byte) else { throw Refusal(.malformed, "a trailer does not begin with a name") }
                guard trailers < ChunkedDecoder.mostTrailers else {
                    throw Refusal(.tooLarge, "more than \(ChunkedDecoder.mostTrailers) trailers")
                }
                trailers += 1
                try takeOverhead(byte, ChunkedDecoder.trailerLimit)
                state = .trailerName
            }
        case .trailerName:
            guard byte == Octet.colon || Octet.isToken(byte) else {
                throw Refusal(.malformed, "a trailer's name is followed by \(FieldLines.hex(byte)) and not by a colon")
            }
            try takeOverhead(byte, ChunkedDecoder.trailerLimit)
            if byte == Octet.colon { state = .trailerValue }
        case .trailerValue:
            if byte == Octet.carriageReturn {
                state = .trailerLineFeed
            } else {
                try takeOverhead(byte, ChunkedDecoder.trailerLimit)
            }
        case .trailerLineFeed:
            try expect(byte, Octet.lineFeed)
            state = .trailerStart
        case .lastLineFeed:
            try expect(byte, Octet.lineFeed)
            return true
        }
        return false
    }

    /// Counts a byte that is passed over. Source of the characters: RFC 9110 §5.5.
    private mutating func takeOverhead(_ byte: UInt8, _ limit: Int) throws(Refusal) {
        overhead += 1
        guard overhead <= limit else { throw Refusal(.tooLarge, "chunk extensions or trailers over \(limit) bytes") }
        guard Octet.isFieldValue(byte) else {
            throw Refusal(.malformed, "a chunk extension or trailer holds \(FieldLines.hex(byte))")
        }
    }

    private func expect(_ byte: UInt8, _ expected: UInt8) throws(Refusal) {
        guard byte == expected else {
            throw Refusal(
                .malformed, "in a chunked body \(FieldLines.hex(byte)) stands for \(FieldLines.hex(expected))")
        }
    }
}
