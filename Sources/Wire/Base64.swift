/// Base64, in the two alphabets of RFC 4648. Decoding is strict: padding as the alphabet requires it, no
/// other characters, and no stray bits at the end, so that a value has exactly one encoding.
package enum Base64 {
    package enum Alphabet: Sendable {
        /// RFC 4648 §4, padded.
        case standard
        /// RFC 4648 §5, without padding: base64url.
        case url
    }

    package static func encode(_ bytes: borrowing Span<UInt8>, as alphabet: Alphabet) -> String {
        String(unsafeUninitializedCapacity: (bytes.count + 2) / 3 * 4) { text in
            var count = 0
            write(bytes, as: alphabet) {
                text[count] = $0
                count += 1
            }
            return count
        }
    }

    /// Appends the text of `bytes`.
    package static func encode(
        _ bytes: borrowing Span<UInt8>, as alphabet: Alphabet, into buffer: inout ByteBuffer
    ) {
        write(bytes, as: alphabet, emit: { buffer.append($0) })
    }

    @inline(__always)
    private static func write(
        _ bytes: borrowing Span<UInt8>, as alphabet: Alphabet, emit: (UInt8) -> Void
    ) {
        var index = 0
        while index < bytes.count {
            let here = Swift.min(bytes.count - index, 3)
            var group = UInt32(bytes[index]) << 16
            if here > 1 { group |= UInt32(bytes[index + 1]) << 8 }
            if here > 2 { group |= UInt32(bytes[index + 2]) }
            for place in 0..<4 {
                if place <= here {
                    emit(
                        letter(
                            for: UInt8(truncatingIfNeeded: group >> UInt32(18 - 6 * place)) & 63, in: alphabet
                        ))
                } else if alphabet == .standard {
                    emit(UInt8(ascii: "="))
                }
            }
            index += 3
        }
    }

    /// Nil where `text` is not Base64 of that alphabet.
    package static func decode(_ text: borrowing Span<UInt8>, as alphabet: Alphabet) -> [UInt8]? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count / 4 * 3 + 3)
        return read(
            text, as: alphabet,
            emit: { group, count in
                unpack(group, count: count) { bytes.append($0) }
                return true
            }) ? bytes : nil
    }

    package static func decode(_ text: String, as alphabet: Alphabet) -> [UInt8]? {
        let bytes = Array(text.utf8)
        return decode(bytes.span, as: alphabet)
    }

    /// Nil where `text` is not Base64 of that alphabet, or holds more bytes than fit.
    package static func decodeShort(_ text: borrowing Span<UInt8>, as alphabet: Alphabet) -> ShortBytes? {
        var bytes = Bytes64()
        var count = 0
        let isStrict = bytes.withUnsafeMutableBytes { target in
            read(text, as: alphabet) { group, length in
                if count <= ShortBytes.longest - 4 {
                    // Zeros follow the bytes of a group; the next one overwrites them.
                    target.storeBytes(of: (group << 8).bigEndian, toByteOffset: count, as: UInt32.self)
                    count += length
                    return true
                }
                guard count + length <= ShortBytes.longest else { return false }
                unpack(group, count: length) {
                    target[count] = $0
                    count += 1
                }
                return true
            }
        }
        return isStrict ? ShortBytes(bytes, count: count) : nil
    }

    /// Appends the bytes; false, with `buffer` as it was, where `text` is not Base64 of that alphabet or
    /// holds more than `limit` bytes.
    package static func decode(
        _ text: borrowing Span<UInt8>, as alphabet: Alphabet, into buffer: inout ByteBuffer, limit: Int
    ) -> Bool {
        guard text.count <= (limit + 2) / 3 * 4 else { return false }
        let start = buffer.count
        let isStrict = read(
            text, as: alphabet,
            emit: { group, count in
                unpack(group, count: count) { buffer.append($0) }
                return true
            })
        guard isStrict, buffer.count - start <= limit else {
            buffer.cut(to: start)
            return false
        }
        return true
    }

    /// Whether `text` is Base64 of that alphabet.
    package static func isStrict(_ text: borrowing Span<UInt8>, as alphabet: Alphabet) -> Bool {
        read(text, as: alphabet, emit: { _, _ in true })
    }

    @inline(__always)
    private static func unpack(_ group: UInt32, count: Int, body: (UInt8) -> Void) {
        for place in 0..<count { body(UInt8(truncatingIfNeeded: group >> UInt32(16 - 8 * place))) }
    }

    /// `emit` takes one to three bytes, the first of them in bits 16 to 23, and says whether they fit.
    @inline(__always)
    private static func read(
        _ text: borrowing Span<UInt8>, as alphabet: Alphabet, emit: (_ group: UInt32, _ count: Int) -> Bool
    ) -> Bool {
        var end = text.count
        if alphabet == .standard {
            guard end.isMultiple(of: 4) else { return false }
            if end > 0, text[end - 1] == UInt8(ascii: "=") { end -= 1 }
            if end > 0, end < text.count, text[end - 1] == UInt8(ascii: "=") { end -= 1 }
        }
        let tail = end & 3
        guard tail != 1 else { return false }
        let table = (alphabet == .standard ? standardValues : urlValues).utf8Start
        var index = 0
        while index < end - tail {
            let letters = UInt32(
                littleEndian: text.bytes.unsafeLoadUnaligned(fromByteOffset: index, as: UInt32.self))
            let (first, second) = (value(of: letters, in: table), value(of: letters >> 8, in: table))
            let (third, fourth) = (value(of: letters >> 16, in: table), value(of: letters >> 24, in: table))
            guard first | second | third | fourth < 64 else { return false }
            guard emit(first &<< 18 | second &<< 12 | third &<< 6 | fourth, 3) else { return false }
            index &+= 4
        }
        guard tail > 0 else { return true }
        let (first, second) = (
            value(of: UInt32(text[index]), in: table), value(of: UInt32(text[index + 1]), in: table)
        )
        let third = tail == 3 ? value(of: UInt32(text[index + 2]), in: table) : 0
        guard first | second | third < 64 else { return false }
        // The remaining bits must be zeros; otherwise the value would have a second encoding.
        guard (tail == 3 ? third & 3 : second & 15) == 0 else { return false }
        return emit(first &<< 18 | second &<< 12 | third &<< 6, tail - 1)
    }

    /// Whether `byte` is a letter of the standard alphabet.
    @inline(__always)
    static func isLetter(_ byte: UInt8) -> Bool { value(of: UInt32(byte), in: standardValues.utf8Start) < 64 }

    // For each byte, 48 plus its value, as a character; `~`, whose value is too high, for bytes outside the
    // alphabet.
    private static let standardValues: StaticString =
        """
        ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~n~~~odefghijklm~~~~~~\
        ~0123456789:;<=>?@ABCDEFGHI~~~~~~JKLMNOPQRSTUVWXYZ[\\]^_`abc~~~~~\
        ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\
        ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
        """
    private static let urlValues: StaticString =
        """
        ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~n~~defghijklm~~~~~~\
        ~0123456789:;<=>?@ABCDEFGHI~~~~o~JKLMNOPQRSTUVWXYZ[\\]^_`abc~~~~~\
        ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\
        ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
        """

    /// Six bits, for the lowest byte of `letter`; 64 or more if that is not in the alphabet.
    @inline(__always)
    private static func value(of letter: UInt32, in table: UnsafePointer<UInt8>) -> UInt32 {
        // The table has an entry for each byte.
        UInt32(table[Int(letter & 0xFF)]) &- 48
    }

    private static let standardLetters: StaticString =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    private static let urlLetters: StaticString =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

    /// `value` is below 64.
    @inline(__always)
    private static func letter(for value: UInt8, in alphabet: Alphabet) -> UInt8 {
        (alphabet == .standard ? standardLetters : urlLetters).utf8Start[Int(value)]
    }
}
