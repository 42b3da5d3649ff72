/// A strict parser of `application/x-www-form-urlencoded`. Source: WHATWG URL §5. Refuses what browsers
/// tolerate: a bad percent escape, an empty pair, and NUL, at which a backend written in C would stop
/// reading.
package enum Form {
    /// A name and its value as they are written, by their offsets.
    package struct Pair: BitwiseCopyable, Sendable {
        package var name: ByteRange
        package var value: ByteRange
        package var encoding: Encoding
    }

    /// Most names and values contain no escapes and need no decoding byte by byte.
    package enum Encoding: BitwiseCopyable, Sendable {
        case plain, escaped
    }

    /// Walks the pairs of one text. The text is handed in at each step, so that the reader owns nothing.
    package struct Reader: Sendable {
        private var position = 0

        package init() {}

        /// Begins at the pair that starts at `position`.
        package init(at position: Int) { self.position = position }

        /// The next pair; nil at the end.
        package mutating func next(in text: borrowing Span<UInt8>) throws(ParseError) -> Pair? {
            // A text that ends in "&" has an empty pair last: one step beyond its end.
            guard
                position < text.count
                    || (position == text.count && position > 0 && text[position - 1] == ampersand)
            else { return nil }
            let start = position
            var extent = Extent(end: start)
            extent.find(in: text)
            let end = extent.end
            var equals = extent.equals
            guard end > start, equals != start else {
                throw ParseError(offset: start, reason: "expected a name")
            }
            position = end < text.count ? end + 1 : end + 2
            if equals < 0 { equals = end }
            return Pair(
                name: ByteRange(from: start, to: equals),
                value: ByteRange(from: Swift.min(equals + 1, end), to: end), encoding: extent.encoding)
        }
    }

    /// How far a pair reaches that has been looked at up to `end`.
    private struct Extent {
        var end: Int
        /// The place of the first `=`; negative for none.
        var equals = -1
        var encoding = Encoding.plain

        /// Moves `end` to the pair's end: the next `&`, or the end of the text.
        mutating func find(in text: borrowing Span<UInt8>) {
            while end &+ 16 <= text.count {
                let block = ByteBlock(of: text, uncheckedAt: end)
                let length = ByteBlock.firstIndex(block.equals(ampersand))
                if equals < 0 {
                    let index = ByteBlock.firstIndex(block.equals(UInt8(ascii: "=")))
                    if index < length { equals = end &+ index }
                }
                let escapes =
                    block.equals(UInt8(ascii: "%")) .| block.equals(UInt8(ascii: "+")) .| block.equals(0)
                if ByteBlock.firstIndex(escapes) < length { encoding = .escaped }
                end &+= length
                guard length == 16 else { return }
            }
            while end < text.count {
                switch text[end] {
                case ampersand: return
                case UInt8(ascii: "="): if equals < 0 { equals = end }
                case UInt8(ascii: "%"), UInt8(ascii: "+"), 0: encoding = .escaped
                default: break
                }
                end += 1
            }
        }
    }

    /// Appends the decoded `raw` and returns its place.
    package static func decode(
        _ raw: ByteRange, of text: borrowing Span<UInt8>, into buffer: inout ByteBuffer
    ) throws(ParseError) -> ByteRange {
        let start = buffer.count
        var index = raw.range.lowerBound
        let end = raw.range.upperBound
        while index < end {
            let byte = try decodedByte(of: text, at: &index, end: end)
            buffer.append(byte)
        }
        return ByteRange(from: start, to: buffer.count)
    }

    /// Whether a pair's decoded name equals `name`.
    package static func isNamed(_ name: StaticString, pair: Pair, of text: borrowing Span<UInt8>) -> Bool {
        let raw = pair.name
        // No spelling is shorter than what it stands for.
        guard raw.count >= name.utf8CodeUnitCount else { return false }
        if pair.encoding == .plain { return text.extracting(raw.range).matches(name) }
        var index = raw.range.lowerBound
        let end = raw.range.upperBound
        for place in 0..<name.utf8CodeUnitCount {
            guard index < end, let byte = try? decodedByte(of: text, at: &index, end: end),
                byte == name.utf8Start[place]
            else {
                return false
            }
        }
        return index == end
    }

    /// Decodes a name or a value as PHP and similar backends do: `+` is a space, and a `%` without two
    /// digits after it stands for itself.
    package static func lenientlyDecoded(_ raw: borrowing Span<UInt8>) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(raw.count)
        var index = 0
        while index < raw.count {
            if raw[index] == UInt8(ascii: "%"), let byte = PercentEncoding.byte(in: raw, at: index + 1) {
                bytes.append(byte)
                index += 3
            } else {
                bytes.append(raw[index] == UInt8(ascii: "+") ? UInt8(ascii: " ") : raw[index])
                index += 1
            }
        }
        return bytes
    }

    /// Appends `name=value` in escaped form, after a `&` where something is there already.
    package static func append(_ name: String, value: borrowing Span<UInt8>, to text: inout [UInt8]) {
        if !text.isEmpty { text.append(ampersand) }
        let name = Array(name.utf8)
        PercentEncoding.encode(name.span, into: &text)
        text.append(UInt8(ascii: "="))
        PercentEncoding.encode(value, into: &text)
    }

    private static var ampersand: UInt8 { UInt8(ascii: "&") }

    @inline(__always)
    private static func decodedByte(
        of text: borrowing Span<UInt8>, at index: inout Int, end: Int
    ) throws(ParseError) -> UInt8 {
        let byte = text[index]
        switch byte {
        case UInt8(ascii: "%"):
            guard end - index > 2, let value = PercentEncoding.byte(in: text, at: index + 1) else {
                throw ParseError(offset: index, reason: "expected two hexadecimal digits after \"%\"")
            }
            guard value != 0 else { throw ParseError(offset: index, reason: "expected no NUL") }
            index += 3
            return value
        case UInt8(ascii: "+"):
            index += 1
            return UInt8(ascii: " ")
        case 0:
            throw ParseError(offset: index, reason: "expected no NUL")
        default:
            index += 1
            return byte
        }
    }
}
