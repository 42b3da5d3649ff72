import CountersignSeal
import CountersignWire

/// In which ways a value that was found can be read.
enum Readings {
    /// Shorter ones are no secrets.
    private static let shortest = 4
    /// Longer ones are none either.
    private static let longest = 512

    /// As text: the value, what it is the Base64 or hex of, words within it, and for bytes that are no text their Base64 and hex.
    static func texts(_ value: [UInt8]) -> Set<String> {
        var found = words(in: value)
        for decoded in decoded(value) { found.formUnion(words(in: decoded)) }
        if !value.allSatisfy(isVisible), (8...longest).contains(value.count) {
            found.formUnion([
                Base64.encode(value.span, .url), Base64.encode(value.span, .standard), Hex.encode(value.span),
            ])
        }
        return found.filter { (shortest...longest).contains($0.utf8.count) }
    }

    /// As a key: 16 bytes and more.
    static func keys(_ value: [UInt8]) -> [[UInt8]] {
        ([value] + decoded(value)).filter { (16...longest).contains($0.count) }
    }

    /// Keys of 32 bytes in it: a seal, or a layout of somebody's own, may have something before them or behind.
    static func stretches(_ value: [UInt8]) -> [[UInt8]] {
        keys(value).filter { (33...160).contains($0.count) }.flatMap { bytes in
            (0...bytes.count - 32).map { Array(bytes[$0..<$0 + 32]) }
        }
    }

    private static func decoded(_ value: [UInt8]) -> [[UInt8]] {
        guard value.count >= 8, value.count <= 4 * longest, let text = String(validating: value, as: UTF8.self) else {
            return []
        }
        return [Base64.decode(text, .standard), Base64.decode(text, .url), Hex.decode(text)].compactMap(\.self)
    }

    /// A text and the words in it; of other bytes the visible stretches.
    private static func words(in value: [UInt8]) -> Set<String> {
        var found: Set<String> = []
        let isText = value.allSatisfy(isVisible)
        for stretch in value.split(whereSeparator: { !isVisible($0) }) {
            found.insert(String(decoding: stretch, as: UTF8.self))
            // A length in front of a text may be visible by chance.
            if !isText { found.insert(String(decoding: stretch.dropFirst(), as: UTF8.self)) }
            for word in stretch.split(whereSeparator: { separators.contains($0) }) {
                found.insert(String(decoding: word, as: UTF8.self))
            }
        }
        return found
    }

    private static let separators = Set(#""{}<>,;&"#.utf8)

    private static func isVisible(_ byte: UInt8) -> Bool { (0x21...0x7E).contains(byte) }
}

extension Secret {
    /// A copy that nobody wipes: it is not ours any more.
    var bytesForThieves: [UInt8] { withExposedBytes { span in span.indices.map { span[$0] } } }
}
