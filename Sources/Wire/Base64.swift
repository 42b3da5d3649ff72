/// Base64, in the two alphabets of RFC 4648. Reading is strict: padding as the alphabet has it, nothing else between,
/// and no stray bits at the end, so that a value has one spelling.
package enum Base64 {
    package enum Alphabet: Sendable {
        /// RFC 4648 §4, padded.
        case standard
        /// RFC 4648 §5, without padding: base64url.
        case url
    }

    package static func encode(_ bytes: borrowing Span<UInt8>, _ alphabet: Alphabet) -> String {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count + 2) / 3 * 4)
        var index = 0
        while index < bytes.count {
            let here = Swift.min(bytes.count - index, 3)
            var group = UInt32(bytes[index]) << 16
            if here > 1 { group |= UInt32(bytes[index + 1]) << 8 }
            if here > 2 { group |= UInt32(bytes[index + 2]) }
            for place in 0..<4 {
                if place <= here {
                    text.append(letter(UInt8(truncatingIfNeeded: group >> UInt32(18 - 6 * place)) & 63, alphabet))
                } else if alphabet == .standard {
                    text.append(UInt8(ascii: "="))
                }
            }
            index += 3
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Nil where `text` is not Base64 of that alphabet.
    package static func decode(_ text: borrowing Span<UInt8>, _ alphabet: Alphabet) -> [UInt8]? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count / 4 * 3 + 3)
        return read(
            text, alphabet,
            {
                bytes.append($0); return true
            }) ? bytes : nil
    }

    package static func decode(_ text: String, _ alphabet: Alphabet) -> [UInt8]? {
        let bytes = Array(text.utf8)
        return decode(bytes.span, alphabet)
    }

    /// Nil where `text` is not Base64 of that alphabet, or holds more bytes than fit.
    package static func decodeShort(_ text: borrowing Span<UInt8>, _ alphabet: Alphabet) -> ShortBytes? {
        var bytes = ShortBytes()
        return read(text, alphabet, { bytes.append($0) }) ? bytes : nil
    }

    @inline(__always)
    private static func read(
        _ text: borrowing Span<UInt8>, _ alphabet: Alphabet, _ emit: (UInt8) -> Bool
    ) -> Bool {
        var end = text.count
        if alphabet == .standard {
            guard end.isMultiple(of: 4) else { return false }
            if end > 0, text[end - 1] == UInt8(ascii: "=") { end -= 1 }
            if end > 0, end < text.count, text[end - 1] == UInt8(ascii: "=") { end -= 1 }
        }
        guard end % 4 != 1 else { return false }
        var group: UInt32 = 0
        for index in 0..<end {
            guard let six = value(text[index], alphabet) else { return false }
            group = group << 6 | UInt32(six)
            // 6, 12, 18, 24 bits: a byte is complete after all but the first letter of a group.
            switch index & 3 {
            case 1: if !emit(UInt8(truncatingIfNeeded: group >> 4)) { return false }
            case 2: if !emit(UInt8(truncatingIfNeeded: group >> 2)) { return false }
            case 3: if !emit(UInt8(truncatingIfNeeded: group)) { return false }
            default: break
            }
        }
        switch end & 3 {
        case 2: return group & 15 == 0
        case 3: return group & 3 == 0
        default: return true
        }
    }

    private static func letter(_ value: UInt8, _ alphabet: Alphabet) -> UInt8 {
        switch value {
        case 0..<26: UInt8(ascii: "A") + value
        case 26..<52: UInt8(ascii: "a") + value - 26
        case 52..<62: UInt8(ascii: "0") + value - 52
        case 62: alphabet == .standard ? UInt8(ascii: "+") : UInt8(ascii: "-")
        default: alphabet == .standard ? UInt8(ascii: "/") : UInt8(ascii: "_")
        }
    }

    @inline(__always)
    private static func value(_ letter: UInt8, _ alphabet: Alphabet) -> UInt8? {
        switch letter {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): letter - UInt8(ascii: "A")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): letter - UInt8(ascii: "a") + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): letter - UInt8(ascii: "0") + 52
        case UInt8(ascii: "+") where alphabet == .standard, UInt8(ascii: "-") where alphabet == .url: 62
        case UInt8(ascii: "/") where alphabet == .standard, UInt8(ascii: "_") where alphabet == .url: 63
        default: nil
        }
    }
}
