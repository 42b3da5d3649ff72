import CountersignSeal
import CountersignWire

/// The ways in which a stolen value can be read.
enum ValueInterpreter {
    /// Shorter values are no secrets.
    private static let shortest = 4
    /// Longer values are no secrets.
    private static let longest = 512

    /// As text: the value, its decoded Base64 or hexadecimal form, the words in it, and the Base64 and
    /// hexadecimal of bytes that are no text.
    static func texts(in value: [UInt8]) -> Set<String> {
        var found = words(in: value)
        for decoded in decoded(value) { found.formUnion(words(in: decoded)) }
        if !value.allSatisfy(isVisible), (8...longest).contains(value.count) {
            found.formUnion([
                Base64.encode(value.span, as: .url), Base64.encode(value.span, as: .standard),
                Hex.encode(value.span),
            ])
        }
        return found.filter { (shortest...longest).contains($0.utf8.count) }
    }

    /// As a key of at least 16 bytes.
    static func keys(in value: [UInt8]) -> [[UInt8]] {
        ([value] + decoded(value)).filter { (16...longest).contains($0.count) }
    }

    /// Each slice of 32 bytes that may be a key: a sealed value or a custom layout may have bytes before or
    /// after it.
    static func keySizedSlices(of value: [UInt8]) -> [[UInt8]] {
        keys(in: value).filter { (33...160).contains($0.count) }.flatMap { bytes in
            (0...bytes.count - 32).map { Array(bytes[$0..<$0 + 32]) }
        }
    }

    private static func decoded(_ value: [UInt8]) -> [[UInt8]] {
        guard value.count >= 8, value.count <= 4 * longest,
            let text = String(validating: value, as: UTF8.self)
        else {
            return []
        }
        return [Base64.decode(text, as: .standard), Base64.decode(text, as: .url), Hex.decode(text)]
            .compactMap(\.self)
    }

    /// A text and the words in it; of other bytes the printable stretches.
    private static func words(in value: [UInt8]) -> Set<String> {
        var found: Set<String> = []
        let isText = value.allSatisfy(isVisible)
        for stretch in value.split(whereSeparator: { !isVisible($0) }) {
            found.insert(String(decoding: stretch, as: UTF8.self))
            // A length field in front of a text may be a printable byte.
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
    /// A copy that is not wiped, for values that the attacker holds.
    var unwipedBytes: [UInt8] { withExposedBytes { span in span.indices.map { span[$0] } } }
}

/// How likely a text is a password or login value: servers limit guesses, so the likeliest come first.
enum PasswordLikelihood: CaseIterable {
    /// Short enough to be typed.
    case typed
    /// As long as common hashes and their encodings.
    case hash
    case long

    init(_ text: String) {
        switch text.utf8.count {
        case ..<32: self = .typed
        case ...64: self = .hash
        default: self = .long
        }
    }
}
