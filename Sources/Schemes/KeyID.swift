import CountersignWire

/// The public name of a key: 1 to 64 visible ASCII characters. Inline, so that looking one up allocates
/// nothing.
package struct KeyID: Sendable, Hashable, CustomStringConvertible {
    package static let longest = 64

    // Zeros after the end: equality is that of all bytes.
    private var storage: Bytes64
    private var length: UInt8

    /// Nil if the bytes are not a key id: empty, too long, or with a space, control or non-ASCII byte.
    package init?(_ bytes: borrowing Span<UInt8>) {
        guard bytes.count > 0, bytes.count <= KeyID.longest else { return nil }
        storage = Bytes64()
        length = UInt8(bytes.count)
        let isVisible = bytes.withUnsafeBytes { bytes in
            storage.withUnsafeMutableBytes { storage in
                storage.copyMemory(from: bytes)
                return KeyID.isVisible(UnsafeRawBufferPointer(storage), count: bytes.count)
            }
        }
        guard isVisible else { return nil }
    }

    /// Whether the first `count` bytes are visible ASCII; eight at a time. All 64 bytes may be read.
    private static func isVisible(_ bytes: UnsafeRawBufferPointer, count: Int) -> Bool {
        let ones: UInt64 = 0x0101_0101_0101_0101
        var index = 0
        var hidden: UInt64 = 0
        while index < count {
            var word = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self))
            // Bytes behind the end count as visible.
            if count - index < 8 { word |= (ones &* 0x21) << UInt64(8 * (count - index)) }
            // The top bit of some byte, exactly if any byte is below 0x21, is 0x7F, or is above: without such
            // a byte, there is no borrow and no carry.
            hidden |= (word &- ones &* 0x21) | (word &+ ones) | word
            index &+= 8
        }
        return hidden & (ones &* 0x80) == 0
    }

    package init?(_ text: String) {
        let bytes = [UInt8](text.utf8)
        self.init(bytes.span)
    }

    /// A key id from a name chosen by the server: bytes other than visible ASCII are left out, and the name
    /// is cut to the longest key id.
    package init(ours text: String) {
        storage = Bytes64()
        length = 0
        for byte in text.utf8 where byte > 0x20 && byte < 0x7F && Int(length) < KeyID.longest {
            storage[Int(length)] = byte
            length += 1
        }
    }

    /// A session's token, which is always short enough and visible.
    package init(_ token: SessionToken) {
        let text = token.description.utf8
        storage = Bytes64()
        length = UInt8(text.count)
        for (index, byte) in text.enumerated() { storage[index] = byte }
    }

    package var bytes: Span<UInt8> {
        @_lifetime(borrow self) borrowing get { storage.span.extracting(0..<Int(length)) }
    }

    /// Its first characters, at least one and at most all.
    package func prefix(_ count: Int) -> KeyID {
        var short = self
        let kept = Swift.min(Swift.max(count, 1), Int(length))
        for index in kept..<Int(length) { short.storage[index] = 0 }
        short.length = UInt8(kept)
        return short
    }

    package var description: String { bytes.text }

    package static func == (left: KeyID, right: KeyID) -> Bool { left.bytes.matches(right.bytes) }

    package func hash(into hasher: inout Hasher) {
        bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
    }
}

/// Key ids as `keyid` carries them: a string, in which `"` and `\` have a `\` before them. An id may hold
/// both. Source: RFC 9651 §3.3.3.
extension KeyID {
    /// The key id for the text between the quotes; nil if the text is not a key id.
    init?(quoted text: borrowing Span<UInt8>) {
        let escape = UInt8(ascii: "\\")
        guard text.firstIndex(of: escape, from: 0) != nil else {
            self.init(text)
            return
        }
        var plain = Bytes64()
        var count = 0
        var index = 0
        while index < text.count {
            if text[index] == escape { index += 1 }
            guard index < text.count, count < KeyID.longest else { return nil }
            plain[count] = text[index]
            count += 1
            index += 1
        }
        self.init(plain.span.extracting(0..<count))
    }

    /// The text to write between the quotes.
    var quotable: String {
        let text = description
        func isSpecial(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "\\") || byte == UInt8(ascii: "\"") }
        guard text.utf8.contains(where: isSpecial) else { return text }
        return String(
            decoding: text.utf8.flatMap { isSpecial($0) ? [UInt8(ascii: "\\"), $0] : [$0] }, as: UTF8.self)
    }
}
