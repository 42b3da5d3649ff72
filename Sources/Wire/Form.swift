/// `application/x-www-form-urlencoded`, read strictly. Source: WHATWG URL §5; what browsers forgive is refused here:
/// a bad percent escape, an empty pair, and NUL, at which C programs behind us would stop reading.
package enum Form {
    package struct Problem: Error, Sendable, Equatable {
        /// Offset of the offending byte.
        package var at: Int
        package var expected: String

        package init(at: Int, expected: String) {
            self.at = at
            self.expected = expected
        }
    }

    /// A name and its value as they are written, by their offsets.
    package struct Pair: BitwiseCopyable, Sendable {
        package var name: Slice
        package var value: Slice
        package var spelling: Spelling
    }

    /// Most names and values stand for themselves; those need not be decoded byte by byte.
    package enum Spelling: BitwiseCopyable, Sendable {
        case plain, escaped
    }

    /// Walks the pairs of one text. The text is handed in at each step, so that the reader owns nothing.
    package struct Reader: Sendable {
        private var position = 0

        package init() {}

        /// Begins at the pair that starts at `position`.
        package init(at position: Int) { self.position = position }

        /// The next pair; nil at the end.
        package mutating func next(in text: borrowing Span<UInt8>) throws(Problem) -> Pair? {
            // A text that ends in "&" has an empty pair last: one step beyond its end.
            guard position < text.count || (position == text.count && position > 0 && text[position - 1] == ampersand)
            else { return nil }
            let start = position
            var end = start
            var equals = -1
            var spelling = Spelling.plain
            while end < text.count {
                let byte = text[end]
                // Nothing above "=" matters here, and most bytes are above.
                if byte <= UInt8(ascii: "=") {
                    if byte == ampersand { break }
                    if byte == UInt8(ascii: "=") {
                        if equals < 0 { equals = end }
                    } else if byte == UInt8(ascii: "%") || byte == UInt8(ascii: "+") || byte == 0 {
                        spelling = .escaped
                    }
                }
                end += 1
            }
            guard end > start, equals != start else { throw Problem(at: start, expected: "a name") }
            position = end < text.count ? end + 1 : end + 2
            if equals < 0 { equals = end }
            return Pair(name: Slice(start, equals), value: Slice(Swift.min(equals + 1, end), end), spelling: spelling)
        }
    }

    /// Appends what `raw` stands for, and says where it went.
    package static func decode(
        _ raw: Slice, of text: borrowing Span<UInt8>, into buffer: inout ByteBuffer
    ) throws(Problem) -> Slice {
        let start = buffer.count
        var index = raw.range.lowerBound
        let end = raw.range.upperBound
        while index < end {
            let byte = try decoded(text, &index, end)
            buffer.append(byte)
        }
        return Slice(start, buffer.count)
    }

    /// Whether a pair's name stands for `name`, however it is escaped.
    package static func isNamed(_ name: StaticString, _ pair: Pair, of text: borrowing Span<UInt8>) -> Bool {
        let raw = pair.name
        // No spelling is shorter than what it stands for.
        guard raw.count >= name.utf8CodeUnitCount else { return false }
        if pair.spelling == .plain { return text.extracting(raw.range).matches(name) }
        var index = raw.range.lowerBound
        let end = raw.range.upperBound
        for place in 0..<name.utf8CodeUnitCount {
            guard index < end, let byte = try? decoded(text, &index, end), byte == name.utf8Start[place] else {
                return false
            }
        }
        return index == end
    }

    /// What PHP and its like read a name or a value as: `+` is a space, and a `%` that no two digits follow is itself.
    package static func forgivinglyDecoded(_ raw: borrowing Span<UInt8>) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(raw.count)
        var index = 0
        while index < raw.count {
            if raw[index] == UInt8(ascii: "%"), let byte = Percent.byte(in: raw, at: index + 1) {
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
    package static func append(_ name: String, _ value: borrowing Span<UInt8>, to text: inout [UInt8]) {
        if !text.isEmpty { text.append(ampersand) }
        let name = Array(name.utf8)
        Percent.encode(name.span, into: &text)
        text.append(UInt8(ascii: "="))
        Percent.encode(value, into: &text)
    }

    private static var ampersand: UInt8 { UInt8(ascii: "&") }

    @inline(__always)
    private static func decoded(
        _ text: borrowing Span<UInt8>, _ index: inout Int, _ end: Int
    ) throws(Problem) -> UInt8 {
        let byte = text[index]
        switch byte {
        case UInt8(ascii: "%"):
            guard end - index > 2, let value = Percent.byte(in: text, at: index + 1) else {
                throw Problem(at: index, expected: "two hexadecimal digits after \"%\"")
            }
            guard value != 0 else { throw Problem(at: index, expected: "no NUL") }
            index += 3
            return value
        case UInt8(ascii: "+"):
            index += 1
            return UInt8(ascii: " ")
        case 0:
            throw Problem(at: index, expected: "no NUL")
        default:
            index += 1
            return byte
        }
    }
}
