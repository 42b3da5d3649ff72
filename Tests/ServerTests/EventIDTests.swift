// Proves that an event's id is the text of a UUID of version 4, with all digits of the generator's words.
import CountersignWire
import Testing

@testable import CountersignServer

@Suite("Event ids")
struct EventIDTests {
    @Test func areUUIDs() {
        for seed in 0..<1_000 as Range<UInt64> {
            var generator = SplitMix64(seed: seed)
            let id = EventID(&generator)
            var again = SplitMix64(seed: seed)
            let high = again.next() & 0xFFFF_FFFF_FFFF_0FFF | 0x4000
            let low = again.next() & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000
            func digits(_ word: UInt64) -> [Character] {
                let text = String(word, radix: 16)
                return Array(String(repeating: "0", count: 16 - text.count) + text)
            }
            let all = digits(high) + digits(low)
            var expected = ""
            for (index, digit) in all.enumerated() {
                if [8, 12, 16, 20].contains(index) { expected.append("-") }
                expected.append(digit)
            }
            #expect(id.text == expected)
            var bytes = [UInt8](repeating: 0, count: 36)
            bytes.withUnsafeMutableBytes { id.write(to: $0) }
            #expect(bytes == Array(expected.utf8))
        }
    }
}
