/// A strict parser of structured field values that copies nothing. Source: RFC 9651 §4.2.
///
/// The parser reads one value from left to right; each step either consumes what the grammar requires or
/// throws an error with the place and the expected text. No input makes a step trap, and no step goes back.
package struct StructuredField: ~Escapable {
    /// An item without its parameters. Slices name bytes of the field's value.
    package enum BareItem: Sendable, Equatable {
        case integer(Int64)
        /// As written: up to twelve digits, a point, up to three.
        case decimal(ByteRange)
        /// What stands between the quotes, escapes and all.
        case string(ByteRange)
        case token(ByteRange)
        /// The Base64 between the colons, not yet decoded.
        case bytes(ByteRange)
        case boolean(Bool)
        /// Whole Unix seconds.
        case date(Int64)
        /// What stands between the quotes, percent escapes and all.
        case displayString(ByteRange)
    }

    let text: Span<UInt8>
    /// Offset of the next byte to be read.
    package private(set) var offset = 0

    @_lifetime(copy text)
    package init(_ text: Span<UInt8>) { self.text = text }

    package var isAtEnd: Bool { offset >= text.count }

    /// The bytes at `slice` of this value.
    package var bytes: Span<UInt8> { @_lifetime(copy self) get { text } }

    // MARK: Containers

    /// The key of a dictionary's next member; nil at the end. The member's value is to be read before the
    /// next one.
    package mutating func nextMember() throws(ParseError) -> ByteRange? {
        try nextListMember() ? try key() : nil
    }

    /// Whether a list has another member, which is to be read before the next one.
    package mutating func nextListMember() throws(ParseError) -> Bool {
        if offset == 0 { skipSpaces() }
        if isAtEnd { return false }
        if started {
            skipWhiteSpace()
            if isAtEnd { return false }
            try expect(UInt8(ascii: ","), description: "\",\" between members")
            skipWhiteSpace()
            if isAtEnd { throw error("expected a member after \",\"") }
        }
        started = true
        return true
    }
    private var started = false

    /// What follows a member's key: `=` before a value. Without it the value is a true boolean.
    package mutating func takeEquals() -> Bool { take(UInt8(ascii: "=")) }

    /// Whether an inner list begins here; its parenthesis is taken.
    package mutating func openList() -> Bool { take(UInt8(ascii: "(")) }

    /// Whether another item of an inner list begins here; at the end its parenthesis is taken.
    package mutating func nextInList(first: inout Bool) throws(ParseError) -> Bool {
        let before = offset
        skipSpaces()
        if take(UInt8(ascii: ")")) { return false }
        if isAtEnd { throw error("expected \")\"") }
        if !first && offset == before { throw error("expected a space or \")\"") }
        first = false
        return true
    }

    /// The key of the next parameter; nil after the last one.
    package mutating func nextParameter() throws(ParseError) -> ByteRange? {
        guard take(UInt8(ascii: ";")) else { return nil }
        skipSpaces()
        return try key()
    }

    /// The value after a parameter's key; true if there is none.
    package mutating func parameterValue() throws(ParseError) -> BareItem {
        takeEquals() ? try bareItem() : .boolean(true)
    }

    /// Skips the remaining parameters.
    package mutating func skipParameters() throws(ParseError) {
        while try nextParameter() != nil { _ = try parameterValue() }
    }

    /// Skips a member's value of any type.
    package mutating func skipMemberValue() throws(ParseError) {
        if takeEquals() {
            if openList() {
                var first = true
                while try nextInList(first: &first) {
                    _ = try bareItem()
                    try skipParameters()
                }
            } else {
                _ = try bareItem()
            }
        }
        try skipParameters()
    }

    /// Whether `text` is a dictionary.
    package static func checkDictionary(_ text: Span<UInt8>) throws(ParseError) {
        var reader = StructuredField(text)
        while try reader.nextMember() != nil { try reader.skipMemberValue() }
    }

    // MARK: Small steps

    package var next: UInt8? { offset < text.count ? text[offset] : nil }

    package func error(_ reason: String) -> ParseError { ParseError(offset: offset, reason: reason) }

    mutating func advance() { offset += 1 }

    /// Moves behind `count` bytes that the caller has read by itself.
    package mutating func skip(_ count: Int) { offset = min(offset + count, text.count) }

    mutating func move(to index: Int) { offset = index }

    package mutating func take(_ byte: UInt8) -> Bool {
        guard offset < text.count, text[offset] == byte else { return false }
        offset += 1
        return true
    }

    mutating func expect(_ byte: UInt8, description reason: String) throws(ParseError) {
        guard take(byte) else { throw error(reason) }
    }

    mutating func skipSpaces() {
        while offset < text.count, text[offset] == 0x20 { offset += 1 }
    }

    private mutating func skipWhiteSpace() {
        while offset < text.count, text[offset] == 0x20 || text[offset] == 0x09 { offset += 1 }
    }

    /// Source: RFC 9651 §4.2.3.3.
    private mutating func key() throws(ParseError) -> ByteRange {
        let start = offset
        guard let first = next, isLower(first) || first == UInt8(ascii: "*") else {
            throw error("expected a key: a lower-case letter or \"*\"")
        }
        var index = start + 1
        while index < text.count, isLower(text[index]) || ASCII.isDigit(text[index]) || isKeyMark(text[index])
        {
            index += 1
        }
        offset = index
        return ByteRange(from: start, to: index)
    }

    private func isLower(_ byte: UInt8) -> Bool { byte >= 0x61 && byte <= 0x7A }

    private func isKeyMark(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "*"): true
        default: false
        }
    }
}
