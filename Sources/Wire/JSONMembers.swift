/// Iterates over the members of one JSON object in place, without copying or allocating. As strict as
/// ``JSONReader``, also about UTF-8, except that names may repeat: the caller must compare them.
package struct JSONMembers: Sendable {
    package struct Member: BitwiseCopyable, Sendable {
        /// Between its quotes, as it is written: see ``forEachByte(of:in:body:)``.
        package var name: ByteRange
        package var kind: Kind
        /// As it is written; of a string what is between its quotes.
        package var value: ByteRange
    }

    package enum Kind: BitwiseCopyable, Sendable {
        case null, yes, no, number, string
        /// `[]` or `{}`, with or without white space inside.
        case emptyContainer
        case container
    }

    /// Levels of containers, the object itself among them: the reader recurses, and a stack is finite.
    package static let deepest = 64

    private var cursor = JSONCursor()
    private var hasStarted = false

    package init() {}

    /// The next member; nil behind the object's end, where nothing but white space may follow.
    package mutating func next(in text: Span<UInt8>) throws(ParseError) -> Member? {
        if !hasStarted {
            try cursor.validate(text)
            cursor.skipSpace(text)
            try cursor.expect(UInt8(ascii: "{"), description: "an object", in: text)
            hasStarted = true
            if cursor.take(UInt8(ascii: "}"), in: text) { return try end(text) }
        } else {
            if cursor.take(UInt8(ascii: "}"), in: text) { return try end(text) }
            try cursor.expect(UInt8(ascii: ","), description: "a comma or the closing bracket", in: text)
        }
        cursor.skipSpace(text)
        let name = try cursor.string(text)
        cursor.skipSpace(text)
        try cursor.expect(UInt8(ascii: ":"), description: "a colon", in: text)
        cursor.skipSpace(text)
        let start = cursor.position
        let kind = try cursor.value(text, depth: 1)
        let isString = kind == .string
        return Member(
            name: name, kind: kind,
            value: ByteRange(from: start + (isString ? 1 : 0), to: cursor.position - (isString ? 1 : 0)))
    }

    private mutating func end(_ text: Span<UInt8>) throws(ParseError) -> Member? {
        cursor.skipSpace(text)
        guard cursor.position == text.count else { throw cursor.error("something after the object") }
        return nil
    }

    /// The same, but for what is written without a backslash, which is handed over as it stands.
    package static func forEachRun(
        of raw: ByteRange, in text: Span<UInt8>, body: (Span<UInt8>) -> Void
    ) throws(ParseError) {
        var cursor = JSONCursor(position: raw.range.lowerBound)
        let end = raw.range.upperBound
        while cursor.position < end {
            let found = text.firstIndex(of: UInt8(ascii: "\\"), from: cursor.position) ?? end
            if found >= end { return body(text.extracting(cursor.position..<end)) }
            if found > cursor.position { body(text.extracting(cursor.position..<found)) }
            cursor.position = found
            var bytes = Bytes16()
            var count = 0
            for byte in UTF8.encode(try cursor.escape(text)) ?? UTF8.encodedReplacementCharacter {
                bytes[count] = byte
                count += 1
            }
            body(bytes.span.extracting(0..<count))
        }
    }

    /// The bytes that a name or a string stands for, escapes resolved. `raw` is a slice that ``next(in:)``
    /// gave.
    package static func forEachByte(
        of raw: ByteRange, in text: Span<UInt8>, body: (UInt8) -> Void
    ) throws(ParseError) {
        var cursor = JSONCursor(position: raw.range.lowerBound)
        while cursor.position < raw.range.upperBound {
            let byte = text[cursor.position]
            guard byte == UInt8(ascii: "\\") else {
                body(byte)
                cursor.position += 1
                continue
            }
            let scalar = try cursor.escape(text)
            UTF8.encode(scalar).map { for byte in $0 { body(byte) } }
        }
    }
}
