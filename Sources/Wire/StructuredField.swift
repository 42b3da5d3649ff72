/// Structured field values, read strictly and without copying. Source: RFC 9651 §4.2.
///
/// A reader walks one value from left to right; each step either takes what the grammar asks for or throws, saying
/// where and what was expected. Whatever the bytes, no step traps and none goes back.
package struct StructuredField: ~Escapable {
    package struct Problem: Error, Sendable, Equatable {
        /// Offset of the offending byte.
        package var at: Int
        package var expected: String
    }

    /// An item without its parameters. Slices name bytes of the field's value.
    package enum BareItem: Sendable, Equatable {
        case integer(Int64)
        /// As written: up to twelve digits, a point, up to three.
        case decimal(Slice)
        /// What stands between the quotes, escapes and all.
        case string(Slice)
        case token(Slice)
        /// The Base64 between the colons, not yet decoded.
        case bytes(Slice)
        case boolean(Bool)
        /// Whole Unix seconds.
        case date(Int64)
        /// What stands between the quotes, percent escapes and all.
        case displayString(Slice)
    }

    let text: Span<UInt8>
    /// Offset of the next byte to be read.
    package private(set) var at = 0

    @_lifetime(copy text)
    package init(_ text: Span<UInt8>) { self.text = text }

    package var isAtEnd: Bool { at >= text.count }

    /// The bytes at `slice` of this value.
    package var bytes: Span<UInt8> { @_lifetime(copy self) get { text } }

    // MARK: Containers

    /// The key of a dictionary's next member; nil at the end. The member's value is to be read before the next one.
    package mutating func nextMember() throws(Problem) -> Slice? {
        try nextListMember() ? try key() : nil
    }

    /// Whether a list has another member, which is to be read before the next one.
    package mutating func nextListMember() throws(Problem) -> Bool {
        if at == 0 { skipSpaces() }
        if isAtEnd { return false }
        if started {
            skipWhiteSpace()
            if isAtEnd { return false }
            try expect(UInt8(ascii: ","), "\",\" between members")
            skipWhiteSpace()
            if isAtEnd { throw problem("a member after \",\"") }
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
    package mutating func nextInList(first: inout Bool) throws(Problem) -> Bool {
        let before = at
        skipSpaces()
        if take(UInt8(ascii: ")")) { return false }
        if isAtEnd { throw problem("\")\"") }
        if !first && at == before { throw problem("a space or \")\"") }
        first = false
        return true
    }

    /// The key of the next parameter; nil where there is none.
    package mutating func nextParameter() throws(Problem) -> Slice? {
        guard take(UInt8(ascii: ";")) else { return nil }
        skipSpaces()
        return try key()
    }

    /// What a parameter's key is followed by: its value, or nothing, which means true.
    package mutating func parameterValue() throws(Problem) -> BareItem {
        takeEquals() ? try bareItem() : .boolean(true)
    }

    /// Reads over parameters that nobody asked for.
    package mutating func skipParameters() throws(Problem) {
        while try nextParameter() != nil { _ = try parameterValue() }
    }

    /// Reads over a member's value, whatever it is.
    package mutating func skipMemberValue() throws(Problem) {
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
    package static func checkDictionary(_ text: Span<UInt8>) throws(Problem) {
        var reader = StructuredField(text)
        while try reader.nextMember() != nil { try reader.skipMemberValue() }
    }

    // MARK: Small steps

    package var next: UInt8? { at < text.count ? text[at] : nil }

    package func problem(_ expected: String) -> Problem { Problem(at: at, expected: expected) }

    mutating func advance() { at += 1 }

    mutating func move(to index: Int) { at = index }

    package mutating func take(_ byte: UInt8) -> Bool {
        guard at < text.count, text[at] == byte else { return false }
        at += 1
        return true
    }

    mutating func expect(_ byte: UInt8, _ expected: String) throws(Problem) {
        guard take(byte) else { throw problem(expected) }
    }

    mutating func skipSpaces() {
        while at < text.count, text[at] == 0x20 { at += 1 }
    }

    private mutating func skipWhiteSpace() {
        while at < text.count, text[at] == 0x20 || text[at] == 0x09 { at += 1 }
    }

    /// Source: RFC 9651 §4.2.3.3.
    private mutating func key() throws(Problem) -> Slice {
        let start = at
        guard let first = next, isLower(first) || first == UInt8(ascii: "*") else {
            throw problem("a key: a lower-case letter or \"*\"")
        }
        var index = start + 1
        while index < text.count, isLower(text[index]) || ASCII.isDigit(text[index]) || isKeyMark(text[index]) {
            index += 1
        }
        at = index
        return Slice(start, index)
    }

    private func isLower(_ byte: UInt8) -> Bool { byte >= 0x61 && byte <= 0x7A }

    private func isKeyMark(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "*"): true
        default: false
        }
    }
}
