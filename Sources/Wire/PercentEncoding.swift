/// Percent-encoding. Source: RFC 3986 §2.1.
@usableFromInline package enum PercentEncoding {
    /// The byte that the two hexadecimal digits at `index` stand for, in either case; nil where there are
    /// none.
    package static func byte(in text: borrowing Span<UInt8>, at index: Int) -> UInt8? {
        guard index >= 0, text.count - index >= 2 else { return nil }
        guard let high = digit(text[index]), let low = digit(text[index + 1]) else { return nil }
        return high << 4 | low
    }

    /// The text with each `%XX` undone, for an address that an operator has written. Nil if a `%` is not
    /// followed by two hexadecimal digits, or if the result has a zero byte or is not UTF-8.
    package static func decodedText(_ text: Substring) -> String? {
        let encoded = Array(text.utf8)
        var bytes: [UInt8] = []
        var index = 0
        while index < encoded.count {
            if encoded[index] == UInt8(ascii: "%") {
                guard let byte = byte(in: encoded.span, at: index + 1) else { return nil }
                bytes.append(byte)
                index += 3
            } else {
                bytes.append(encoded[index])
                index += 1
            }
        }
        let decoded = String(decoding: bytes, as: UTF8.self)
        return bytes.contains(0) || !decoded.utf8.elementsEqual(bytes) ? nil : decoded
    }

    /// Appends `bytes`, all but unreserved characters (`A–Z a–z 0–9 - . _ ~`) encoded, in upper-case digits.
    package static func encode(_ bytes: borrowing Span<UInt8>, into text: inout [UInt8]) {
        for index in 0..<bytes.count {
            let byte = bytes[index]
            if isUnreserved(byte) {
                text.append(byte)
            } else {
                text.append(UInt8(ascii: "%"))
                text.append(upper(byte >> 4))
                text.append(upper(byte & 15))
            }
        }
    }

    /// Appends `%` and the two upper-case digits of `byte`.
    package static func escape(_ byte: UInt8, into text: inout ByteBuffer) {
        text.append(UInt8(ascii: "%"))
        text.append(upper(byte >> 4))
        text.append(upper(byte & 15))
    }

    /// Appends one byte as form data has it, all but letters, digits, `*`, `-`, `.` and `_` encoded: the set
    /// that "percent-encode after encoding" names. Source: WHATWG URL §1.3, application/x-www-form-urlencoded
    /// percent-encode set.
    package static func append(form byte: UInt8, to buffer: inout ByteBuffer) {
        let mark = byte == UInt8(ascii: "*") || (isUnreserved(byte) && byte != UInt8(ascii: "~"))
        if mark { return buffer.append(byte) }
        buffer.append(UInt8(ascii: "%"))
        buffer.append(upper(byte >> 4))
        buffer.append(upper(byte & 15))
    }

    /// Source: RFC 3986 §2.3.
    @inlinable package static func isUnreserved(_ byte: UInt8) -> Bool {
        // Two words of bits, one for each half of ASCII.
        let low: UInt64 = 0x03FF_6000_0000_0000
        let high: UInt64 = 0x47FF_FFFE_87FF_FFFE
        guard byte < 0x80 else { return false }
        return ((byte < 0x40 ? low : high) >> UInt64(byte & 0x3F)) & 1 == 1
    }

    /// Where the run of unreserved characters ends that begins at `start`.
    @inlinable package static func endOfUnreserved(in text: borrowing Span<UInt8>, from start: Int) -> Int {
        var end = start
        while end < text.count, isUnreserved(text[end]) { end += 1 }
        return end
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        if ASCII.isDigit(byte) { return byte - UInt8(ascii: "0") }
        let lower = byte | 0x20
        return lower >= UInt8(ascii: "a") && lower <= UInt8(ascii: "f") ? lower - UInt8(ascii: "a") + 10 : nil
    }

    static func upper(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") - 10 + value
    }
}
