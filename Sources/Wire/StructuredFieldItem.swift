/// Bare items. Source: RFC 9651 §4.2.3.1.
extension StructuredField {
    package mutating func bareItem() throws(ParseError) -> BareItem {
        guard let first = next else { throw error("expected an item") }
        switch first {
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: ":"): return .bytes(try byteSequence())
        case UInt8(ascii: "?"): return .boolean(try boolean())
        case UInt8(ascii: "@"): return .date(try date())
        case UInt8(ascii: "%"): return .displayString(try displayString())
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try number()
        default: return .token(try token())
        }
    }

    /// Source: RFC 9651 §4.2.5. Returns what stands between the quotes.
    package mutating func string() throws(ParseError) -> ByteRange {
        try expect(UInt8(ascii: "\""), description: "a string in quotes")
        let start = offset
        var index = start
        while true {
            index = text.endOfPlainText(from: index)
            guard index < text.count else {
                throw ParseError(offset: index, reason: "expected a closing quote")
            }
            let byte = text[index]
            if byte == UInt8(ascii: "\"") {
                move(to: index + 1)
                return ByteRange(from: start, to: index)
            }
            if byte == UInt8(ascii: "\\") {
                index += 1
                guard index < text.count,
                    text[index] == UInt8(ascii: "\"") || text[index] == UInt8(ascii: "\\")
                else {
                    throw ParseError(
                        offset: index, reason: "expected a quote or a backslash after a backslash")
                }
                index += 1
            } else {
                throw ParseError(offset: index, reason: "expected a visible ASCII character or a space")
            }
        }
    }

    /// Source: RFC 9651 §4.2.4. Up to fifteen digits, or twelve, a point, and up to three.
    private mutating func number() throws(ParseError) -> BareItem {
        let start = offset
        let isNegative = take(UInt8(ascii: "-"))
        let digits = offset
        var value: Int64 = 0
        while let byte = next, ASCII.isDigit(byte) {
            guard offset - digits < 15 else { throw error("expected at most fifteen digits") }
            value = value * 10 + Int64(byte - UInt8(ascii: "0"))
            advance()
        }
        guard offset > digits else { throw error("expected a digit") }
        guard next == UInt8(ascii: ".") else { return .integer(isNegative ? -value : value) }
        guard offset - digits <= 12 else { throw error("expected at most twelve digits before the point") }
        advance()
        let fraction = offset
        while let byte = next, ASCII.isDigit(byte) {
            guard offset - fraction < 3 else { throw error("expected at most three digits after the point") }
            advance()
        }
        guard offset > fraction else { throw error("expected a digit after the point") }
        return .decimal(ByteRange(from: start, to: offset))
    }

    /// Source: RFC 9651 §4.2.6.
    private mutating func token() throws(ParseError) -> ByteRange {
        let start = offset
        guard let first = next, ASCII.isLetter(first) || first == UInt8(ascii: "*") else {
            throw error("expected an item")
        }
        while let byte = next, isTokenByte(byte) || byte == UInt8(ascii: ":") || byte == UInt8(ascii: "/") {
            advance()
        }
        return ByteRange(from: start, to: offset)
    }

    /// Source: RFC 9651 §4.2.7. Checks only the letters; the decoder checks the rest.
    private mutating func byteSequence() throws(ParseError) -> ByteRange {
        let start = offset + 1
        let index = text.endOfBase64(from: start)
        guard index < text.count, text[index] == UInt8(ascii: ":") else {
            throw ParseError(offset: index, reason: "expected Base64 and a closing \":\"")
        }
        move(to: index + 1)
        return ByteRange(from: start, to: index)
    }

    /// Source: RFC 9651 §4.2.8.
    private mutating func boolean() throws(ParseError) -> Bool {
        advance()
        if take(UInt8(ascii: "1")) { return true }
        if take(UInt8(ascii: "0")) { return false }
        throw error("expected 0 or 1 after \"?\"")
    }

    /// Source: RFC 9651 §4.2.9.
    private mutating func date() throws(ParseError) -> Int64 {
        advance()
        guard case .integer(let seconds) = try number() else { throw error("expected whole seconds") }
        return seconds
    }

    /// Source: RFC 9651 §4.2.10.
    private mutating func displayString() throws(ParseError) -> ByteRange {
        advance()
        try expect(UInt8(ascii: "\""), description: "a quote after \"%\"")
        let start = offset
        while let byte = next {
            switch byte {
            case UInt8(ascii: "\""):
                let slice = ByteRange(from: start, to: offset)
                advance()
                return slice
            case UInt8(ascii: "%"):
                advance()
                for _ in 0..<2 {
                    guard let digit = next, isLowerHex(digit) else {
                        throw error("expected two lower-case hexadecimal digits")
                    }
                    advance()
                }
            case 0x20...0x7E: advance()
            default: throw error("expected a visible ASCII character or a space")
            }
        }
        throw error("expected a closing quote")
    }

    private func isLowerHex(_ byte: UInt8) -> Bool {
        ASCII.isDigit(byte) || (byte >= UInt8(ascii: "a") && byte <= UInt8(ascii: "f"))
    }

    /// Source: RFC 9110 §5.6.2.
    private func isTokenByte(_ byte: UInt8) -> Bool {
        if ASCII.isLetter(byte) || ASCII.isDigit(byte) { return true }
        switch byte {
        case UInt8(ascii: "!"), UInt8(ascii: "#"), UInt8(ascii: "$"), UInt8(ascii: "%"), UInt8(ascii: "&"),
            UInt8(ascii: "'"), UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "^"), UInt8(ascii: "_"), UInt8(ascii: "`"), UInt8(ascii: "|"), UInt8(ascii: "~"):
            return true
        default: return false
        }
    }
}

extension Span<UInt8> {
    /// The first byte from `start` on that has a meaning in a quoted string or may not stand in one: a quote,
    /// a backslash, a control character, or a byte beyond ASCII.
    package func endOfPlainText(from start: Int) -> Int {
        end(from: start, isIn: Span.isPlain) { block in
            ByteBlock.isBetween(block.bytes, first: 0x20, last: 0x7E)
                .& .!(block.equals(UInt8(ascii: "\"")) .| block.equals(UInt8(ascii: "\\")))
        }
    }

    /// The first byte from `start` on that is neither of the standard alphabet of Base64 nor its padding.
    fileprivate func endOfBase64(from start: Int) -> Int {
        end(from: start, isIn: { Base64.isLetter($0) || $0 == UInt8(ascii: "=") }) { block in
            block.areLetters .| block.areDigits .| block.equals(UInt8(ascii: "+"))
                .| block.equals(UInt8(ascii: "/")) .| block.equals(UInt8(ascii: "="))
        }
    }

    /// The first byte from `start` on that is not of a class. Looks at sixteen bytes at a time.
    @inline(__always)
    private func end(
        from start: Int, isIn: (UInt8) -> Bool, areIn: (ByteBlock) -> ByteBlock.Mask
    ) -> Int {
        var position = start
        while position + 16 <= count {
            let length = ByteBlock.firstIndex(.!areIn(ByteBlock(of: self, uncheckedAt: position)))
            position += length
            guard length == 16 else { return position }
        }
        while position < count, isIn(self[position]) { position += 1 }
        return position
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        byte >= 0x20 && byte <= 0x7E && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
    }
}
