/// A place in a JSON text, moved over one token after the other. The text is handed in at each step. Source:
/// RFC 8259.
struct JSONCursor: Sendable {
    var position = 0

    func error(_ reason: String) -> ParseError { ParseError(offset: position, reason: reason) }

    /// The whole text must be UTF-8.
    func validate(_ text: Span<UInt8>) throws(ParseError) {
        guard let offset = text.firstIllFormedUTF8 else { return }
        throw ParseError(offset: offset, reason: "not UTF-8")
    }

    mutating func skipSpace(_ text: Span<UInt8>) {
        while position < text.count {
            switch text[position] {
            case 0x20, 0x09, 0x0A, 0x0D: position += 1
            default: return
            }
        }
    }

    mutating func expect(_ byte: UInt8, description what: String, in text: Span<UInt8>) throws(ParseError) {
        guard position < text.count, text[position] == byte else { throw error("expected \(what)") }
        position += 1
    }

    /// Past white space, and past `byte` where it follows.
    mutating func take(_ byte: UInt8, in text: Span<UInt8>) -> Bool {
        skipSpace(text)
        guard position < text.count, text[position] == byte else { return false }
        position += 1
        return true
    }

    /// Past one value; `depth` containers are open.
    mutating func value(_ text: Span<UInt8>, depth: Int) throws(ParseError) -> JSONMembers.Kind {
        guard position < text.count else { throw error("expected a value") }
        switch text[position] {
        case UInt8(ascii: "{"): return try container(in: text, closing: UInt8(ascii: "}"), depth: depth)
        case UInt8(ascii: "["): return try container(in: text, closing: UInt8(ascii: "]"), depth: depth)
        case UInt8(ascii: "\""):
            _ = try string(text)
            return .string
        case UInt8(ascii: "t"): return try word("true", kind: .yes, in: text)
        case UInt8(ascii: "f"): return try word("false", kind: .no, in: text)
        case UInt8(ascii: "n"): return try word("null", kind: .null, in: text)
        default:
            try number(text)
            return .number
        }
    }

    private mutating func container(
        in text: Span<UInt8>, closing: UInt8, depth: Int
    ) throws(ParseError) -> JSONMembers.Kind {
        guard depth < JSONMembers.deepest else { throw error("more than \(JSONMembers.deepest) levels") }
        position += 1
        if take(closing, in: text) { return .emptyContainer }
        repeat {
            skipSpace(text)
            if closing == UInt8(ascii: "}") {
                _ = try string(text)
                skipSpace(text)
                try expect(UInt8(ascii: ":"), description: "a colon", in: text)
                skipSpace(text)
            }
            _ = try value(text, depth: depth + 1)
        } while take(UInt8(ascii: ","), in: text)
        try expect(closing, description: "a comma or the closing bracket", in: text)
        return .container
    }

    private mutating func word(
        _ word: StaticString, kind: JSONMembers.Kind, in text: Span<UInt8>
    ) throws(ParseError) -> JSONMembers.Kind {
        let end = position + word.utf8CodeUnitCount
        guard end <= text.count, text.extracting(position..<end).matches(word) else {
            throw error("expected \(word)")
        }
        position = end
        return kind
    }

    /// `-? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?`. Only its shape is checked. Source: RFC 8259
    /// §6.
    private mutating func number(_ text: Span<UInt8>) throws(ParseError) {
        func peek(_ byte: UInt8) -> Bool { position < text.count && text[position] == byte }
        if peek(UInt8(ascii: "-")) { position += 1 }
        if peek(UInt8(ascii: "0")) { position += 1 } else { try digits(text) }
        if peek(UInt8(ascii: ".")) {
            position += 1
            try digits(text)
        }
        if peek(UInt8(ascii: "e")) || peek(UInt8(ascii: "E")) {
            position += 1
            if peek(UInt8(ascii: "+")) || peek(UInt8(ascii: "-")) { position += 1 }
            try digits(text)
        }
    }

    private mutating func digits(_ text: Span<UInt8>) throws(ParseError) {
        let start = position
        while position < text.count, ASCII.isDigit(text[position]) { position += 1 }
        guard position > start else { throw error("expected a value") }
    }

    /// Past a string; what is between its quotes.
    mutating func string(_ text: Span<UInt8>) throws(ParseError) -> ByteRange {
        try expect(UInt8(ascii: "\""), description: "a string in quotes", in: text)
        let start = position
        while position < text.count {
            switch text[position] {
            case UInt8(ascii: "\""):
                position += 1
                return ByteRange(from: start, to: position - 1)
            case UInt8(ascii: "\\"): _ = try escape(text)
            case 0..<0x20: throw error("a control character in a string")
            default: position += 1
            }
        }
        throw error("a string without its closing quote")
    }

    /// Past a backslash and what follows it; the character that both stand for.
    mutating func escape(_ text: Span<UInt8>) throws(ParseError) -> Unicode.Scalar {
        guard position + 1 < text.count else { throw error("a string without its closing quote") }
        let letter = text[position + 1]
        if letter == UInt8(ascii: "u") { return try escapedScalar(text) }
        let byte: UInt8
        switch letter {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): byte = letter
        case UInt8(ascii: "b"): byte = 0x08
        case UInt8(ascii: "f"): byte = 0x0C
        case UInt8(ascii: "n"): byte = 0x0A
        case UInt8(ascii: "r"): byte = 0x0D
        case UInt8(ascii: "t"): byte = 0x09
        default: throw error("an unknown escape")
        }
        position += 2
        return Unicode.Scalar(byte)
    }

    /// `\uXXXX`, or a surrogate pair of two. Half a pair names no character, and is refused.
    private mutating func escapedScalar(_ text: Span<UInt8>) throws(ParseError) -> Unicode.Scalar {
        let start = position
        var code = try codeUnit(text)
        if (0xD800..<0xDC00).contains(code) {
            let low = try codeUnit(text)
            guard (0xDC00..<0xE000).contains(low) else { throw error("half a surrogate pair") }
            code = 0x10000 + (code - 0xD800) << 10 + (low - 0xDC00)
        }
        guard let scalar = Unicode.Scalar(code) else {
            throw ParseError(offset: start, reason: "half a surrogate pair")
        }
        return scalar
    }

    /// The four digits of one `\uXXXX`.
    private mutating func codeUnit(_ text: Span<UInt8>) throws(ParseError) -> UInt32 {
        guard position + 1 < text.count, text[position] == UInt8(ascii: "\\"),
            text[position + 1] == UInt8(ascii: "u"),
            let high = PercentEncoding.byte(in: text, at: position + 2),
            let low = PercentEncoding.byte(in: text, at: position + 4)
        else { throw error("expected \\u and four hexadecimal digits") }
        position += 6
        return UInt32(high) << 8 | UInt32(low)
    }
}
