/// Names one event, in an answer and in the log: a UUID of version 4. Source: RFC 9562 §5.4.
struct EventID {
    let bytes: InlineArray<36, UInt8>

    /// Not secret, so the loop's own quick generator serves.
    init(_ generator: inout EventGenerator) {
        var high = generator.next()
        var low = generator.next()
        high = high & ~0xF000 | 0x4000
        low = low & ~(0b11 << 62) | 0b10 << 62
        var text = InlineArray<36, UInt8>(repeating: UInt8(ascii: "-"))
        EventID.write(high, 0, 8, into: &text, at: 0)
        EventID.write(high, 8, 12, into: &text, at: 9)
        EventID.write(high, 12, 16, into: &text, at: 14)
        EventID.write(low, 0, 4, into: &text, at: 19)
        EventID.write(low, 4, 16, into: &text, at: 24)
        bytes = text
    }

    /// Digits `first..<end` of `word`, counted from its highest.
    private static func write(
        _ word: UInt64, _ first: Int, _ end: Int, into text: inout InlineArray<36, UInt8>, at place: Int
    ) {
        for digit in first..<end {
            let nibble = UInt8(truncatingIfNeeded: word >> UInt64(60 - digit * 4)) & 15
            text[place + digit - first] = nibble &+ (nibble < 10 ? UInt8(ascii: "0") : UInt8(ascii: "a") - 10)
        }
    }

    var text: String { String(decoding: (0..<36).map { bytes[$0] }, as: UTF8.self) }
}

/// Numbers that do not repeat: SplitMix64 from a random seed.
struct EventGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
