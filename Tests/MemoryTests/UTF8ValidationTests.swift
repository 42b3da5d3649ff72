// Proves that UTF-8 is judged as the standard library judges it, over all first three bytes and all ways to
// be cut short.
import CountersignMemory
import Testing

@Suite("UTF-8")
struct UTF8ValidationTests {
    @Test("every sequence of up to three bytes, and what begins with four")
    func sequences() {
        var bytes: [UInt8] = [0, 0, 0]
        for first in UInt8.min...UInt8.max {
            for second in UInt8.min...UInt8.max {
                bytes[0] = first
                bytes[1] = second
                #expect(isSame(Array(bytes[..<2])))
                // One of each kind of third byte, and of fourth.
                for third: UInt8 in [0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC2, 0xFF] {
                    bytes[2] = third
                    #expect(isSame(bytes))
                    for fourth: UInt8 in [0x00, 0x80, 0xBF, 0xC0] { #expect(isSame(bytes + [fourth])) }
                }
            }
        }
    }

    @Test("wherever it stands in a text")
    func places() {
        for length in 0..<40 {
            let text = [UInt8](repeating: 0x61, count: length)
            for sequence: [UInt8] in [
                [0xC3, 0xA4], [0xF0, 0x9F, 0x98, 0x80], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xE2],
            ] {
                #expect(isSame(text + sequence))
                #expect(isSame(text + sequence + text))
            }
        }
    }

    private func isSame(_ bytes: [UInt8]) -> Bool {
        var parser = Unicode.UTF8.ForwardParser()
        var rest = bytes.makeIterator()
        var offset = 0
        while true {
            switch parser.parseScalar(from: &rest) {
            case .valid(let scalar): offset += scalar.count
            case .error: return bytes.span.firstIllFormedUTF8 == offset && String(utf8: bytes) == nil
            case .emptyInput:
                let text = String(utf8: bytes)
                return bytes.span.firstIllFormedUTF8 == nil && text.map { Array($0.utf8) } == bytes
            }
        }
    }
}
