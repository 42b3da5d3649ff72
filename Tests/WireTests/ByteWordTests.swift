import CountersignWire
import Testing

/// Code that reads eight bytes at a time finds the same as code that reads one byte at a time.
@Suite struct ByteWordTests {
    /// Texts of up to two words and a rest, of `filler` and two bytes: `byte` at each place, and `next` behind
    /// it, which a borrow or a carry may reach.
    private func forEachText(
        filledWith filler: UInt8, next: [UInt8], body: (_ text: [UInt8]) -> Void
    ) {
        for count in 1...19 {
            for place in 0..<count {
                for byte in UInt8.min...UInt8.max {
                    for next in next {
                        var text = [UInt8](repeating: filler, count: count)
                        text[place] = byte
                        if place + 1 < count { text[place + 1] = next }
                        body(text)
                    }
                }
            }
        }
    }

    @Test func theEndOfPlainText() {
        func isPlain(_ byte: UInt8) -> Bool {
            (0x20...0x7E).contains(byte) && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
        }
        var wrong: [UInt8]?
        forEachText(filledWith: UInt8(ascii: "a"), next: [0x20, 0x23, 0x5D, 0x7E, 0xFF]) { text in
            let end = text.firstIndex { !isPlain($0) } ?? text.count
            if text.span.endOfPlainText(from: 0) != end { wrong = text }
        }
        #expect(wrong == nil)
    }

    @Test func lowerCase() {
        var wrong: [UInt8]?
        forEachText(filledWith: UInt8(ascii: "a"), next: [UInt8(ascii: "@"), UInt8(ascii: "Z"), 0xDA]) {
            text in
            var buffer = ByteBuffer()
            buffer.append(lowercasing: text.span)
            if buffer.array != text.map(ASCII.lowercased) { wrong = text }
        }
        #expect(wrong == nil)
    }
}
