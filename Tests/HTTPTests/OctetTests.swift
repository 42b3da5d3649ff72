import CountersignWire
import Testing

@testable import CountersignHTTP

/// Runs of bytes are looked at eight or sixteen at a time: every byte, at every place in them, beside one
/// byte at a time.
@Suite struct OctetTests {
    @Test(arguments: 0..<16) func blocksHaveTheClassesOfTheirBytes(place: Int) {
        func isName(_ byte: UInt8) -> Bool {
            OctetClass.isTokenWithoutUnderscore(byte) && !"!#$%&'*+.^`|~".utf8.contains(byte)
        }
        for byte in UInt8.min...UInt8.max {
            var bytes = SIMD16<UInt8>(repeating: UInt8(ascii: "x"))
            bytes[place] = byte
            let block = ByteBlock(bytes: bytes)
            func expect(_ mask: ByteBlock.Mask, of isMember: (UInt8) -> Bool, line: Int = #line) {
                #expect((0..<16).allSatisfy { mask[$0] == isMember(bytes[$0]) }, "\(byte), line \(line)")
            }
            expect(block.areControls) { !OctetClass.isFieldValue($0) || $0 == OctetClass.tab }
            expect(block.areOfNames, of: isName)
            expect(block.areOfTargets, of: OctetClass.isTarget)
            expect(block.areOfHosts, of: OctetClass.isHost)
            expect(block.equals(byte)) { $0 == byte }
            #expect(ByteBlock.isAny(block.areControls) == (byte < 0x20 || byte == 0x7F))
            let first = ByteBlock.firstIndex(block.areControls)
            #expect(first == (byte < 0x20 || byte == 0x7F ? place : 16))
        }
    }

    @Test func comparesEveryByte() {
        let texts: [StaticString] = [
            "t", "te", "abc", "host", "close", "chunked", "keep-alive", "100-continue", "http://",
            "http2-settings-23",
        ]
        for text in texts {
            let lower = Array("\(text)".utf8)
            func equals(_ bytes: [UInt8]) -> Bool {
                FieldLines.equals(in: bytes.span, at: ByteRange(from: 0, to: bytes.count), text: text)
            }
            // Each byte at each place, in the same text in upper case.
            for place in lower.indices {
                for byte in UInt8.min...UInt8.max {
                    var bytes = Array("\(text)".uppercased().utf8)
                    bytes[place] = byte
                    let expected = OctetClass.lowercased(byte) == lower[place]
                    #expect(equals(bytes) == expected, "\(text): byte \(byte) at \(place)")
                }
            }
            #expect(!equals(lower + [0]) && !equals(Array(lower.dropLast())))
        }
    }

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
