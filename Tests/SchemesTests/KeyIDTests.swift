import CountersignSchemes
import CountersignWire
import Testing

/// A key id consists of 1 to 64 visible ASCII characters. Any other byte is refused, at every position.
@Suite struct KeyIDTests {
    @Test func takesVisibleCharactersOnly() {
        var wrong: [UInt8]?
        for count in 1...19 {
            for place in 0..<count {
                for byte in UInt8.min...UInt8.max {
                    for next: UInt8 in [0x21, 0x7E] {
                        var text = [UInt8](repeating: UInt8(ascii: "a"), count: count)
                        text[place] = byte
                        if place + 1 < count { text[place + 1] = next }
                        if (KeyID(text.span) != nil) != (0x21...0x7E).contains(byte) { wrong = text }
                    }
                }
            }
        }
        #expect(wrong == nil)
    }

    @Test func hasOneTo64Bytes() {
        for (count, isTaken) in [(0, false), (1, true), (64, true), (65, false)] {
            #expect((KeyID(String(repeating: "k", count: count)) != nil) == isTaken)
        }
    }
}
