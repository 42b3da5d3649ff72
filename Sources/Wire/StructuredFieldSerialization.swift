/// Serializes structured field values in their canonical form. Source: RFC 9651 §4.1.
///
/// Stricter than the grammar in one respect: a repeated dictionary key or parameter is refused, although the
/// standard lets the last one win. Otherwise the signature could not distinguish parsers that choose
/// different ones.
extension StructuredField {
    /// What a field's value is as a whole.
    package enum Kind: Sendable { case item, list, dictionary }

    /// Appends the canonical form of `text`.
    package static func append(
        canonical text: Span<UInt8>, as kind: Kind, to output: inout ByteBuffer
    ) throws(ParseError) {
        var reader = StructuredField(text)
        switch kind {
        case .item:
            reader.skipSpaces()
            try reader.copyItem(to: &output)
            reader.skipSpaces()
            guard reader.isAtEnd else { throw reader.error("expected one item") }
        case .list:
            var isFirst = true
            while try reader.nextListMember() {
                if !isFirst { output.append(", ") }
                isFirst = false
                try reader.copyMember(to: &output)
            }
        case .dictionary:
            var keys = Keys()
            while let key = try reader.nextMember() {
                if !keys.isEmpty { output.append(", ") }
                try keys.insert(key, from: reader)
                output.append(reader.bytes.extracting(key.range))
                try reader.copyValue(to: &output)
            }
        }
    }

    /// Appends the canonical form of one member's value; false where the dictionary has no such member.
    package static func append(
        member wanted: borrowing Span<UInt8>, of text: Span<UInt8>, to output: inout ByteBuffer
    ) throws(ParseError) -> Bool {
        var reader = StructuredField(text)
        var keys = Keys()
        var isFound = false
        while let key = try reader.nextMember() {
            try keys.insert(key, from: reader)
            guard reader.bytes.extracting(key.range).matches(wanted) else {
                try reader.skipMemberValue()
                continue
            }
            isFound = true
            if reader.takeEquals() {
                try reader.copyMember(to: &output)
            } else {
                output.append("?1")
                try reader.copyParameters(to: &output)
            }
        }
        return isFound
    }

    /// After a dictionary's key: true is written as no value at all.
    private mutating func copyValue(to output: inout ByteBuffer) throws(ParseError) {
        guard takeEquals() else { return try copyParameters(to: &output) }
        if next == UInt8(ascii: "?") {
            guard case .boolean(let isTrue) = try bareItem() else {
                throw error("expected 0 or 1 after \"?\"")
            }
            if !isTrue { output.append("=?0") }
            return try copyParameters(to: &output)
        }
        output.append(UInt8(ascii: "="))
        try copyMember(to: &output)
    }

    /// An item or an inner list.
    private mutating func copyMember(to output: inout ByteBuffer) throws(ParseError) {
        guard openList() else { return try copyItem(to: &output) }
        output.append(UInt8(ascii: "("))
        var isFirst = true
        while true {
            let wasFirst = isFirst
            guard try nextInList(first: &isFirst) else { break }
            if !wasFirst { output.append(UInt8(ascii: " ")) }
            try copyItem(to: &output)
        }
        output.append(UInt8(ascii: ")"))
        try copyParameters(to: &output)
    }

    private mutating func copyItem(to output: inout ByteBuffer) throws(ParseError) {
        output.append(canonical: try strictItem(), of: text)
        try copyParameters(to: &output)
    }

    private mutating func copyParameters(to output: inout ByteBuffer) throws(ParseError) {
        // Most items have none, and a list may have an item for every other byte.
        guard next == UInt8(ascii: ";") else { return }
        var keys = Keys()
        while let key = try nextParameter() {
            try keys.insert(key, from: self)
            output.append(UInt8(ascii: ";"))
            output.append(text.extracting(key.range))
            let value = takeEquals() ? try strictItem() : .boolean(true)
            if value == .boolean(true) { continue }
            output.append(UInt8(ascii: "="))
            output.append(canonical: value, of: text)
        }
    }

    /// An item whose Base64, where it has some, is written in the one way there is.
    private mutating func strictItem() throws(ParseError) -> BareItem {
        let item = try bareItem()
        if case .bytes(let slice) = item, !Base64.isStrict(text.extracting(slice.range), as: .standard) {
            throw error("expected padded Base64 before this")
        }
        return item
    }

    /// The keys of one dictionary or one item, held inline.
    private struct Keys {
        private typealias Eight = (
            ByteRange, ByteRange, ByteRange, ByteRange, ByteRange, ByteRange, ByteRange, ByteRange
        )
        private static let eight: Eight = (.empty, .empty, .empty, .empty, .empty, .empty, .empty, .empty)

        private var slices: (Eight, Eight, Eight, Eight, Eight, Eight, Eight, Eight) = (
            eight, eight, eight, eight, eight, eight, eight, eight
        )
        private var count = 0

        var isEmpty: Bool { count == 0 }

        mutating func insert(_ key: ByteRange, from reader: borrowing StructuredField)
            throws(ParseError)
        {
            guard count < 64 else { throw reader.error("expected at most 64 keys") }
            let bytes = reader.bytes.extracting(key.range)
            let isNew = withUnsafeMutableBytes(of: &slices) { slices in
                let slices = slices.assumingMemoryBound(to: ByteRange.self)
                for index in 0..<count where reader.bytes.extracting(slices[index].range).matches(bytes) {
                    return false
                }
                slices[count] = key
                return true
            }
            guard isNew else { throw reader.error("expected each key once") }
            count += 1
        }
    }
}

extension ByteBuffer {
    /// Source: RFC 9651 §4.1.3.1. Strings, tokens and byte sequences have one spelling as they are read here.
    fileprivate mutating func append(canonical item: StructuredField.BareItem, of text: Span<UInt8>) {
        switch item {
        case .integer(let number): append(decimal: number)
        case .decimal(let slice): append(decimalWithPoint: text.extracting(slice.range))
        case .token(let slice): append(text.extracting(slice.range))
        case .boolean(let value): append(value ? "?1" : "?0")
        case .string(let slice):
            append(UInt8(ascii: "\""))
            append(text.extracting(slice.range))
            append(UInt8(ascii: "\""))
        case .bytes(let slice):
            append(UInt8(ascii: ":"))
            append(text.extracting(slice.range))
            append(UInt8(ascii: ":"))
        case .date(let seconds):
            append(UInt8(ascii: "@"))
            append(decimal: seconds)
        case .displayString(let slice): append(displayString: text.extracting(slice.range))
        }
    }

    /// Without zeros that say nothing: one digit at least on either side. Source: RFC 9651 §4.1.5.
    private mutating func append(decimalWithPoint text: borrowing Span<UInt8>) {
        let zero = UInt8(ascii: "0")
        var start = text[0] == UInt8(ascii: "-") ? 1 : 0
        var end = text.count
        while text[start] == zero, text[start + 1] != UInt8(ascii: ".") { start += 1 }
        while text[end - 1] == zero, text[end - 2] != UInt8(ascii: ".") { end -= 1 }
        let digits = text.extracting(start..<end)
        if text[0] == UInt8(ascii: "-"), !digits.matches("0.0") { append(UInt8(ascii: "-")) }
        append(digits)
    }

    /// Escaped is what must be, and no more. Source: RFC 9651 §4.1.11.
    private mutating func append(displayString text: borrowing Span<UInt8>) {
        append("%\"")
        var index = 0
        while index < text.count {
            let isEscape = text[index] == UInt8(ascii: "%")
            let byte = isEscape ? PercentEncoding.byte(in: text, at: index + 1) ?? text[index] : text[index]
            if byte < 0x20 || byte > 0x7E || byte == UInt8(ascii: "%") || byte == UInt8(ascii: "\"") {
                append(text.extracting(index..<index + 3))
            } else {
                append(byte)
            }
            index += isEscape ? 3 : 1
        }
        append(UInt8(ascii: "\""))
    }
}
