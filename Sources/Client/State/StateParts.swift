import CountersignSeal

/// Named parts in one secret. Not text: JSON parsing leaves copies in strings, which are not wiped.
///
/// A layout byte, then for each part its tag (1 byte), its length (4 bytes, big-endian) and its content,
/// ordered by tag. Parts that this build does not know are kept unchanged.
struct StateParts: Sendable {
    private static let layout: UInt8 = 1

    private var parts: [UInt8: Secret] = [:]

    init() {}

    /// Nil if ``contents`` did not write `contents`.
    init?(_ contents: Secret) {
        guard contents.count >= 1, contents.withExposedBytes({ $0[0] }) == StateParts.layout else {
            return nil
        }
        var at = 1
        while at < contents.count {
            guard contents.count - at >= 5 else { return nil }
            let (tag, length) = contents.withExposedBytes { bytes in
                (bytes[at], (1...4).reduce(0) { $0 << 8 | Int(bytes[at + $1]) })
            }
            at += 5
            guard contents.count - at >= length, parts[tag] == nil else { return nil }
            parts[tag] = contents.part(at..<at + length)
            at += length
        }
    }

    var contents: Secret {
        var pieces = [StateParts.secret([StateParts.layout])]
        for (tag, part) in parts.sorted(by: { $0.key < $1.key }) {
            pieces.append(StateParts.secret([tag] + StateParts.bigEndian(UInt64(part.count)).suffix(4)))
            pieces.append(part)
        }
        return Secret(joining: pieces)
    }

    subscript(tag: UInt8) -> Secret? {
        get { parts[tag] }
        set { parts[tag] = newValue }
    }

    /// The parts whose tag is not in `known` and lies in `range`.
    func unknown(_ known: Set<UInt8>, in range: ClosedRange<UInt8>) -> StateParts {
        var others = StateParts()
        others.parts = parts.filter { range.contains($0.key) && !known.contains($0.key) }
        return others
    }

    /// Adds the parts of `others` to these.
    mutating func add(_ others: StateParts) { parts.merge(others.parts) { own, _ in own } }

    func bytes(_ tag: UInt8) -> [UInt8]? {
        parts[tag]?.withExposedBytes { span in span.indices.map { span[$0] } }
    }

    func text(_ tag: UInt8) -> String? { bytes(tag).flatMap { String(utf8: $0) } }

    func number(_ tag: UInt8) -> Int64? {
        guard let bytes = bytes(tag), bytes.count == 8 else { return nil }
        return Int64(bitPattern: bytes.reduce(0) { $0 << 8 | UInt64($1) })
    }

    mutating func set(_ tag: UInt8, to bytes: [UInt8]?) { parts[tag] = bytes.map(StateParts.secret) }

    mutating func set(_ tag: UInt8, to text: String?) { set(tag, to: text.map { Array($0.utf8) }) }

    mutating func set(_ tag: UInt8, _ number: Int64?) {
        set(tag, to: number.map { StateParts.bigEndian(UInt64(bitPattern: $0)) })
    }

    private static func secret(_ bytes: [UInt8]) -> Secret { Secret(copying: bytes.span) }

    private static func bigEndian(_ number: UInt64) -> [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: number >> UInt64(56 - 8 * $0)) }
    }
}
