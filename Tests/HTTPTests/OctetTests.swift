import Testing

@testable import CountersignHTTP

/// Runs of bytes are looked at eight or sixteen at a time: every byte, at every place in them, beside one
/// byte at a time.
@Suite struct OctetTests {
    /// 40 bytes of which the one at `place` is `byte`.
    private func bytes(_ byte: UInt8, at place: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: UInt8(ascii: "x"), count: 40)
        bytes[place] = byte
        return bytes
    }

    private func endsOneByOne(_ bytes: [UInt8], from start: Int, _ isMember: (UInt8) -> Bool) -> Int {
        bytes[start...].firstIndex { !isMember($0) } ?? bytes.count
    }

    @Test(arguments: 0..<40) func findsTheEndOfAFieldValue(place: Int) {
        for byte in UInt8.min...UInt8.max {
            let bytes = bytes(byte, at: place)
            for start in [0, 1, 7, 8, 15, 23] {
                let expected = endsOneByOne(bytes, from: start) { ($0 >= 0x20 && $0 != 0x7F) || $0 == 0x09 }
                #expect(
                    OctetClass.endOfFieldValue(in: bytes.span, from: start) == expected,
                    "byte \(byte) from \(start)")
            }
        }
    }

    @Test func findsTheFirstOfSeveralControlCharacters() {
        for first in 0..<30 {
            for second in first..<30 {
                var bytes = bytes(0x0D, at: first)
                bytes[second] = 0x00
                #expect(OctetClass.endOfFieldValue(in: bytes.span, from: 0) == first)
            }
        }
    }

    /// It may stop early, where fewer than eight bytes are left, but steps over nothing else.
    @Test(arguments: 0..<40) func stepsOverLettersAndHyphensAlone(place: Int) {
        for byte in UInt8.min...UInt8.max {
            let bytes = bytes(byte, at: place)
            for start in 0..<9 {
                let end = OctetClass.endOfLettersAndHyphens(in: bytes.span, from: start)
                let expected = endsOneByOne(bytes, from: start) {
                    ($0 | 0x20 >= UInt8(ascii: "a") && $0 | 0x20 <= UInt8(ascii: "z"))
                        || $0 == UInt8(ascii: "-")
                }
                #expect(
                    end == expected || end < expected && end > bytes.count - 8, "byte \(byte) from \(start)")
            }
        }
    }
}
