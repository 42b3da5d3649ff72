import CountersignWire

/// The classes of bytes that parts of an HTTP/1.1 head may contain. Source: RFC 9110 §5.6.2, RFC 9112 §2–5.
enum OctetClass {
    static let tab = UInt8(ascii: "\t")
    static let lineFeed = UInt8(ascii: "\n")
    static let carriageReturn = UInt8(ascii: "\r")
    static let space = UInt8(ascii: " ")
    static let colon = UInt8(ascii: ":")
    static let underscore = UInt8(ascii: "_")

    /// `tchar`, from two 64-bit masks, one for each half of ASCII.
    @inline(__always) static func isToken(_ byte: UInt8) -> Bool {
        let low: UInt64 = 0x03FF_6CFA_0000_0000
        let high: UInt64 = 0x57FF_FFFF_C7FF_FFFE
        guard byte < 0x80 else { return false }
        return ((byte < 0x40 ? low : high) >> UInt64(byte & 0x3F)) & 1 == 1
    }

    /// `tchar` except the underscore, for which ``HeadRules/UnderscoreFields`` has a rule.
    @inline(__always) static func isTokenWithoutUnderscore(_ byte: UInt8) -> Bool {
        let low: UInt64 = 0x03FF_6CFA_0000_0000
        let high: UInt64 = 0x57FF_FFFF_47FF_FFFE
        guard byte < 0x80 else { return false }
        return ((byte < 0x40 ? low : high) >> UInt64(byte & 0x3F)) & 1 == 1
    }

    /// The optional white space around a field value.
    @inline(__always) static func isBlank(_ byte: UInt8) -> Bool { byte == space || byte == tab }

    @inline(__always) static func isUpperCase(_ byte: UInt8) -> Bool { byte &- UInt8(ascii: "A") < 26 }

    /// The bytes of a field value: visible ASCII, space, tab and obs-text; no control character.
    @inline(__always) static func isFieldValue(_ byte: UInt8) -> Bool {
        (byte >= 0x20 && byte != 0x7F) || byte == tab
    }

    /// The position of the first byte from `start` on that a field value may not contain. Checks eight
    /// bytes at a time, because most of a head is field values.
    static func endOfFieldValue(in bytes: Span<UInt8>, from start: Int) -> Int {
        let raw = bytes.bytes
        var position = start
        while position + 16 <= raw.byteCount {
            let hits = controls(in: raw.unsafeLoadUnaligned(fromByteOffset: position, as: UInt64.self))
            let later = controls(in: raw.unsafeLoadUnaligned(fromByteOffset: position + 8, as: UInt64.self))
            guard hits | later != 0 else {
                position += 16
                continue
            }
            position += (hits != 0 ? hits.trailingZeroBitCount : 64 + later.trailingZeroBitCount) >> 3
            guard bytes[position] == tab else { return position }
            position += 1
        }
        while position < bytes.count, isFieldValue(bytes[position]) { position += 1 }
        return position
    }

    /// Sets the top bit of each byte that is a control character. A borrow can set a further bit, but only
    /// above a correct one: the lowest set bit is always correct.
    @inline(__always) private static func controls(in word: UInt64) -> UInt64 {
        let delete = word ^ (ones &* 0x7F)
        return ((word &- ones &* 0x20) & ~word | (delete &- ones) & ~delete) & (ones &* 0x80)
    }

    /// The position of the first byte from `start` on that is neither a letter nor a hyphen, the characters
    /// of most field names. Checks eight bytes at a time.
    @inline(__always) static func endOfLettersAndHyphens(in bytes: Span<UInt8>, from start: Int) -> Int {
        let raw = bytes.bytes
        var position = start
        while position + 8 <= raw.byteCount {
            let word = raw.unsafeLoadUnaligned(fromByteOffset: position, as: UInt64.self)
            // The first sum sets a byte's top bit from `a` on, the second from the byte after `z` on. Bytes
            // from 0x80 on are not letters.
            let folded = (word | ones &* 0x20) & (ones &* 0x7F)
            let letters = (folded &+ ones &* (0x80 - 0x61)) & ~(folded &+ ones &* (0x80 - 0x7B))
            let distances = (word ^ (ones &* UInt64(UInt8(ascii: "-")))) & (ones &* 0x7F)
            let hyphens = ~(distances &+ ones &* 0x7F)
            let others = (~(letters | hyphens) | word) & (ones &* 0x80)
            guard others == 0 else { return position + others.trailingZeroBitCount >> 3 }
            position += 8
        }
        return position
    }

    /// Lower-cases the letters of a token, whose bytes are all ASCII, eight at a time.
    static func lowercase(_ token: Slice<UnsafeMutableRawBufferPointer>) {
        let bytes = UnsafeMutableRawBufferPointer(rebasing: token)
        let whole = bytes.count & ~7
        for offset in stride(from: 0, to: whole, by: 8) {
            let word = bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
            // Sets the top bit of each byte from `A` to `Z`. Shifted right by two, it is the bit in which the
            // two cases of a letter differ.
            let upper = (word &+ ones &* (0x80 - 0x41)) ^ (word &+ ones &* (0x80 - 0x5B))
            bytes.storeBytes(of: word | (upper & (ones &* 0x80)) >> 2, toByteOffset: offset, as: UInt64.self)
        }
        for offset in whole..<bytes.count { bytes[offset] = lowercased(bytes[offset]) }
    }

    private static var ones: UInt64 { 0x0101_0101_0101_0101 }

    /// The bytes of a request target: visible ASCII except `#`, because a fragment is never sent.
    @inline(__always) static func isTarget(_ byte: UInt8) -> Bool {
        byte > 0x20 && byte < 0x7F && byte != UInt8(ascii: "#")
    }

    /// The bytes of `Host`: a registered name or address literal, and a port. Stricter than RFC 3986: no
    /// user information, no percent-encoding, nothing that two parsers could read differently.
    @inline(__always) static func isHost(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"),
            colon, UInt8(ascii: "["), UInt8(ascii: "]"):
            true
        default: false
        }
    }

    @inline(__always) static func lowercased(_ byte: UInt8) -> UInt8 {
        byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte
    }

    static func hexValue(_ byte: UInt8) -> Int? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): Int(byte - UInt8(ascii: "0"))
        case UInt8(ascii: "a")...UInt8(ascii: "f"): Int(byte - UInt8(ascii: "a")) + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): Int(byte - UInt8(ascii: "A")) + 10
        default: nil
        }
    }
}

/// The same classes of sixteen bytes at once.
extension ByteBlock {
    /// Control characters. Of these, only a tab may be in a field value.
    @inline(__always) var areControls: Mask { bytes .< ByteBlock.all(0x20) .| equals(0x7F) }

    /// Letters, digits and hyphens, the bytes of usual field names: of a name of these, a set bit 5 makes the
    /// lower-case name.
    @inline(__always) var areOfNames: Mask {
        areLetters .| equals(UInt8(ascii: "-")) .| areDigits
    }

    /// See ``OctetClass/isTarget(_:)``.
    @inline(__always) var areOfTargets: Mask {
        ByteBlock.isBetween(bytes, first: 0x21, last: 0x7E) .& (bytes .!= ByteBlock.all(UInt8(ascii: "#")))
    }

    /// See ``OctetClass/isHost(_:)``.
    @inline(__always) var areOfHosts: Mask {
        areLetters .| ByteBlock.isBetween(bytes, first: UInt8(ascii: "0"), last: UInt8(ascii: ":"))
            .| ByteBlock.isBetween(bytes, first: UInt8(ascii: "-"), last: UInt8(ascii: "."))
            .| equals(UInt8(ascii: "_")) .| equals(UInt8(ascii: "[")) .| equals(UInt8(ascii: "]"))
    }
}
