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
        var place = 0
        for digit in 0..<32 {
            if digit == 8 || digit == 12 || digit == 16 || digit == 20 { place += 1 }
            let word = digit < 16 ? high : low
            let nibble = UInt8(truncatingIfNeeded: word >> UInt64(60 - (digit & 15) * 4)) & 15
            text[place] = nibble < 10 ? UInt8(ascii: "0") + nibble : UInt8(ascii: "a") + nibble - 10
            place += 1
        }
        bytes = text
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
