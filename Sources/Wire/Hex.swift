/// Hexadecimal digits, two for each byte. Written and accepted in lower case only, so that a value has
/// exactly one encoding.
package enum Hex {
    package static func encode(_ bytes: borrowing Span<UInt8>) -> String {
        var text: [UInt8] = []
        text.reserveCapacity(bytes.count * 2)
        for index in 0..<bytes.count {
            text.append(digit(bytes[index] >> 4))
            text.append(digit(bytes[index] & 15))
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Appends two digits for each byte.
    package static func append(_ bytes: borrowing Span<UInt8>, to text: inout ByteBuffer) {
        for index in 0..<bytes.count {
            text.append(digit(bytes[index] >> 4))
            text.append(digit(bytes[index] & 15))
        }
    }

    /// Nil where `text` is not pairs of lower-case hexadecimal digits, or holds more bytes than fit.
    package static func decodeShort(_ text: borrowing Span<UInt8>) -> ShortBytes? {
        guard text.count.isMultiple(of: 2) else { return nil }
        var bytes = ShortBytes()
        var index = 0
        while index < text.count {
            let (high, low) = (value(text[index]), value(text[index + 1]))
            guard high | low < 16 else { return nil }
            guard bytes.append(high << 4 | low) else { return nil }
            index += 2
        }
        return bytes
    }

    /// Nil where `text` is not pairs of lower-case hexadecimal digits.
    package static func decode(_ text: String) -> [UInt8]? {
        let digits = Array(text.utf8)
        guard digits.count.isMultiple(of: 2) else { return nil }
        var bytes: [UInt8] = []
        for index in stride(from: 0, to: digits.count, by: 2) {
            let (high, low) = (value(digits[index]), value(digits[index + 1]))
            guard high | low < 16 else { return nil }
            bytes.append(high << 4 | low)
        }
        return bytes
    }

    static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") - 10 + value
    }

    // For each ASCII character, 48 plus its value, as a character; `~`, whose value is too high, for all
    // characters that are not digits.
    private static let values: StaticString =
        """
        ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~0123456789~~~~\
        ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~:;<=>?~~~~~~~~~~~~~~~~~~~~~~~~~
        """

    /// Four bits; 16 or more if the character is not a lower-case digit.
    @inline(__always)
    private static func value(_ digit: UInt8) -> UInt8 {
        digit < 128 ? values.utf8Start[Int(digit)] &- 48 : 255
    }
}
