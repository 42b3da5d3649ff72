/// The public name of a key: 1 to 64 visible ASCII characters. Inline, so that looking one up allocates nothing.
package struct KeyID: Sendable, Hashable, CustomStringConvertible {
    package static let longest = 64

    fileprivate var words: InlineArray<8, UInt64>
    fileprivate var length: UInt8

    /// Nil where the bytes are no key id: empty, too long, or with a space, control or non-ASCII byte.
    package init?(_ bytes: Span<UInt8>) {
        guard bytes.count > 0, bytes.count <= KeyID.longest else { return nil }
        words = InlineArray(repeating: 0)
        length = UInt8(bytes.count)
        for index in 0..<bytes.count {
            let byte = bytes[index]
            guard byte > 0x20, byte < 0x7F else { return nil }
            words[index >> 3] |= UInt64(byte) << UInt64((index & 7) * 8)
        }
    }

    package init?(_ text: String) {
        let bytes = [UInt8](text.utf8)
        self.init(bytes.span)
    }

    package var description: String {
        String(decoding: (0..<Int(length)).map { UInt8(truncatingIfNeeded: words[$0 >> 3] >> UInt64(($0 & 7) * 8)) }, as: UTF8.self)
    }

    package static func == (left: KeyID, right: KeyID) -> Bool {
        guard left.length == right.length else { return false }
        for index in 0..<8 where left.words[index] != right.words[index] { return false }
        return true
    }

    package func hash(into hasher: inout Hasher) {
        for index in 0...(Int(length) - 1) >> 3 { hasher.combine(words[index]) }
    }
}

extension KeyID {
    package var count: Int { Int(length) }

    /// The byte at `index`, below ``count``.
    package subscript(_ index: Int) -> UInt8 {
        UInt8(truncatingIfNeeded: words[index >> 3] >> UInt64((index & 7) * 8))
    }
}
