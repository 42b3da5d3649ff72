/// Reads one JSON text strictly: well-formed UTF-8, no duplicate names, nothing after the value, every size
/// bounded.
///
/// Duplicate names are refused because readers disagree on which one counts, and a check made by one reader
/// would not bind the other. Total: any bytes give a document or a ``ParseError``.
package struct JSONReader {
    /// What is taken beyond RFC 8259.
    package enum Dialect: Sendable {
        case strict
        /// Also `// to the end of the line` and `/* … */`, for a file that people write by hand.
        case comments
    }

    /// How large and how deep a text may be.
    package struct Bounds: Sendable {
        package var bytes = 1 << 20
        package var depth = 64

        package init() {}
    }

    private let bytes: [UInt8]
    private let dialect: Dialect
    private let deepest: Int
    private var position = 0

    package static func read(
        _ bytes: [UInt8], dialect: Dialect = .strict, bounds: Bounds = Bounds()
    ) throws(ParseError) -> JSONDocument {
        guard bytes.count <= bounds.bytes, bytes.count <= Int(UInt32.max) else {
            throw ParseError(offset: bounds.bytes, reason: "more than \(bounds.bytes) bytes")
        }
        if let offset = firstIllFormed(bytes) { throw ParseError(offset: offset, reason: "not UTF-8") }
        var reader = JSONReader(bytes: bytes, dialect: dialect, deepest: bounds.depth)
        try reader.skipSpace()
        let root = try reader.value(depth: 0)
        try reader.skipSpace()
        guard reader.position == bytes.count else { throw reader.error("something after the value") }
        return JSONDocument(bytes: bytes, root: root)
    }

    private init(bytes: [UInt8], dialect: Dialect, deepest: Int) {
        self.bytes = bytes
        self.dialect = dialect
        self.deepest = deepest
    }

    private static func firstIllFormed(_ bytes: [UInt8]) -> Int? {
        bytes.span.firstIllFormedUTF8
    }
}

extension JSONReader {
    private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    private func error(_ reason: String) -> ParseError { ParseError(offset: position, reason: reason) }

    private mutating func value(depth: Int) throws(ParseError) -> JSON {
        let start = position
        let content: JSON.Content
        guard let first = next else { throw error("expected a value") }
        switch first {
        case UInt8(ascii: "{"): content = try object(depth: depth)
        case UInt8(ascii: "["): content = try array(depth: depth)
        case UInt8(ascii: "\""): content = .string(try string())
        case UInt8(ascii: "t"): content = try word("true", content: .bool(true))
        case UInt8(ascii: "f"): content = try word("false", content: .bool(false))
        case UInt8(ascii: "n"): content = try word("null", content: .null)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): content = try number()
        default: throw error("expected a value")
        }
        return JSON(content: content, raw: ByteRange(from: start, to: position))
    }

    private mutating func object(depth: Int) throws(ParseError) -> JSON.Content {
        try enter(depth)
        var members: [JSON.Member] = []
        var names: Set<[UInt8]> = []
        if try leave(UInt8(ascii: "}")) { return .object(members) }
        repeat {
            try skipSpace()
            guard next == UInt8(ascii: "\"") else { throw error("expected a name in quotes") }
            let start = position
            let name = try string()
            guard names.insert(Array(name.utf8)).inserted else {
                throw ParseError(offset: start, reason: "the name `\(name.prefix(64))` for the second time")
            }
            try skipSpace()
            try expect(UInt8(ascii: ":"), description: "a colon")
            try skipSpace()
            members.append(JSON.Member(name: name, value: try value(depth: depth + 1)))
        } while try another(before: UInt8(ascii: "}"))
        return .object(members)
    }

    private mutating func array(depth: Int) throws(ParseError) -> JSON.Content {
        try enter(depth)
        var elements: [JSON] = []
        if try leave(UInt8(ascii: "]")) { return .array(elements) }
        repeat {
            try skipSpace()
            elements.append(try value(depth: depth + 1))
        } while try another(before: UInt8(ascii: "]"))
        return .array(elements)
    }

    /// Past an opening bracket. The depth is bounded because the reader recurses, and a stack is finite.
    private mutating func enter(_ depth: Int) throws(ParseError) {
        guard depth < deepest else { throw error("more than \(deepest) levels") }
        position += 1
    }

    /// Whether the closing bracket comes at once; if so it is past it.
    private mutating func leave(_ close: UInt8) throws(ParseError) -> Bool {
        try skipSpace()
        guard next == close else { return false }
        position += 1
        return true
    }

    /// Past a comma (true) or the closing bracket (false).
    private mutating func another(before close: UInt8) throws(ParseError) -> Bool {
        if try leave(close) { return false }
        try expect(UInt8(ascii: ","), description: "a comma or the closing bracket")
        return true
    }

    private mutating func expect(_ byte: UInt8, description what: String) throws(ParseError) {
        guard next == byte else { throw error("expected \(what)") }
        position += 1
    }

    private mutating func word(_ text: StaticString, content: JSON.Content) throws(ParseError) -> JSON.Content
    {
        let end = position + text.utf8CodeUnitCount
        guard end <= bytes.count else { throw error("expected \(text)") }
        for index in position..<end where bytes[index] != text.utf8Start[index - position] {
            throw error("expected \(text)")
        }
        position = end
        return content
    }
}

extension JSONReader {
    /// `-? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?`. Only its shape is checked: no figure is
    /// computed here.
    private mutating func number() throws(ParseError) -> JSON.Content {
        if next == UInt8(ascii: "-") { position += 1 }
        if next == UInt8(ascii: "0") { position += 1 } else { try digits() }
        if next == UInt8(ascii: ".") {
            position += 1
            try digits()
        }
        if next == UInt8(ascii: "e") || next == UInt8(ascii: "E") {
            position += 1
            if next == UInt8(ascii: "+") || next == UInt8(ascii: "-") { position += 1 }
            try digits()
        }
        return .number
    }

    private mutating func digits() throws(ParseError) {
        let start = position
        while let byte = next, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { position += 1 }
        guard position > start else { throw error("expected a digit") }
    }

    private mutating func string() throws(ParseError) -> String {
        position += 1
        var text: [UInt8] = []
        while let byte = next {
            switch byte {
            case UInt8(ascii: "\""):
                position += 1
                return String(decoding: text, as: UTF8.self)
            case UInt8(ascii: "\\"): try escape(into: &text)
            case 0..<0x20: throw error("a control character in a string")
            default:
                text.append(byte)
                position += 1
            }
        }
        throw error("a string without its closing quote")
    }

    private mutating func escape(into text: inout [UInt8]) throws(ParseError) {
        position += 1
        guard let letter = next else { throw error("a string without its closing quote") }
        switch letter {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(letter)
        case UInt8(ascii: "b"): text.append(0x08)
        case UInt8(ascii: "f"): text.append(0x0C)
        case UInt8(ascii: "n"): text.append(0x0A)
        case UInt8(ascii: "r"): text.append(0x0D)
        case UInt8(ascii: "t"): text.append(0x09)
        case UInt8(ascii: "u"):
            position += 1
            text.append(contentsOf: String(Character(try escapedScalar())).utf8)
            return
        default: throw error("an unknown escape")
        }
        position += 1
    }

    /// `XXXX`, or a surrogate pair `XXXX\uXXXX`. Half a pair names no character, and is refused.
    private mutating func escapedScalar() throws(ParseError) -> Unicode.Scalar {
        let start = position
        var code = try fourHexDigits()
        if (0xD800..<0xDC00).contains(code) {
            guard next == UInt8(ascii: "\\") else { throw error("half a surrogate pair") }
            position += 1
            try expect(UInt8(ascii: "u"), description: "the second half of a surrogate pair")
            let low = try fourHexDigits()
            guard (0xDC00..<0xE000).contains(low) else { throw error("half a surrogate pair") }
            code = 0x10000 + (code - 0xD800) << 10 + (low - 0xDC00)
        }
        guard let scalar = Unicode.Scalar(code) else {
            throw ParseError(offset: start, reason: "half a surrogate pair")
        }
        return scalar
    }

    private mutating func fourHexDigits() throws(ParseError) -> UInt32 {
        var code: UInt32 = 0
        for _ in 0..<4 {
            guard let byte = next, let digit = Character(Unicode.Scalar(byte)).hexDigitValue else {
                throw error("expected four hexadecimal digits")
            }
            code = code << 4 | UInt32(digit)
            position += 1
        }
        return code
    }

    private mutating func skipSpace() throws(ParseError) {
        while let byte = next {
            switch byte {
            case 0x20, 0x09, 0x0A, 0x0D: position += 1
            case UInt8(ascii: "/") where dialect == .comments: try skipComment()
            default: return
            }
        }
    }

    private mutating func skipComment() throws(ParseError) {
        position += 1
        switch next {
        case UInt8(ascii: "/"):
            while let byte = next, byte != 0x0A { position += 1 }
        case UInt8(ascii: "*"):
            position += 1
            while position + 1 < bytes.count {
                if bytes[position] == UInt8(ascii: "*"), bytes[position + 1] == UInt8(ascii: "/") {
                    position += 2
                    return
                }
                position += 1
            }
            throw error("a comment without its end")
        default: throw error("expected a comment")
        }
    }
}
