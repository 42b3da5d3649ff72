extension Span<UInt8> {
    /// Where the first byte sequence begins that is no UTF-8; nil where all of it is. The standard library's
    /// `UTF8Span` needs iOS 26. Source: Unicode 16 §3.9, table 3-7.
    package var firstIllFormedUTF8: Int? {
        withUnsafeBytes { bytes in
            var index = 0
            while index < bytes.count {
                if index + 8 <= bytes.count {
                    let word = bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
                    if word & 0x8080_8080_8080_8080 == 0 {
                        index += 8
                        continue
                    }
                }
                let length = UTF8Sequence.length(at: index, of: bytes)
                guard length > 0 else { return index }
                index += length
            }
            return nil
        }
    }
}

extension String {
    /// The text that the bytes stand for; nil where they are not UTF-8. `String(validating:as:)` needs iOS
    /// 18.
    package init?(utf8 bytes: Span<UInt8>) {
        guard bytes.firstIllFormedUTF8 == nil else { return nil }
        self = bytes.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
    }

    /// The same of bytes in an array.
    package init?(utf8 bytes: [UInt8]) { self.init(utf8: bytes.span) }
}

private enum UTF8Sequence {
    /// Bytes of the well-formed sequence at `index`; 0 where there is none.
    static func length(at index: Int, of bytes: UnsafeRawBufferPointer) -> Int {
        let first = bytes[index]
        if first < 0x80 { return 1 }
        let count = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4
        guard first >= 0xC2, first <= 0xF4, index + count <= bytes.count else { return 0 }
        // The second byte rules out longer spellings, surrogates, and what lies beyond U+10FFFF.
        let second: ClosedRange<UInt8> =
            switch first {
            case 0xE0: 0xA0...0xBF
            case 0xED: 0x80...0x9F
            case 0xF0: 0x90...0xBF
            case 0xF4: 0x80...0x8F
            default: 0x80...0xBF
            }
        guard second.contains(bytes[index + 1]) else { return 0 }
        for next in index + 2..<index + max(count, 2) where bytes[next] & 0xC0 != 0x80 { return 0 }
        return count
    }
}
