// Proves that fixed numbers of bytes keep what is written to them, held inline and in an array alike, and
// that spans of them and of arrays see exactly those bytes; that a value behind a lock is changed by one
// thread at a time.
import CountersignMemory
import Dispatch
import Testing

@Suite("Fixed numbers of bytes, and spans")
struct BytesTests {
    @Test("each size holds as many bytes as it says, zeros at first")
    func sizes() {
        #expect(array(Bytes16().span) == zeros(16) && array(ArrayBytes<Length16>().span) == zeros(16))
        #expect(array(Bytes32().span) == zeros(32) && array(ArrayBytes<Length32>().span) == zeros(32))
        #expect(array(Bytes64().span) == zeros(64) && array(ArrayBytes<Length64>().span) == zeros(64))
    }

    @Test("a byte that is written is read at its index, and no other byte changes")
    func writing() {
        for index in 0..<64 {
            var (inline, inArray) = (Bytes64(), ArrayBytes<Length64>())
            let before = inArray
            inline[index] = 0xA5
            inArray.withUnsafeMutableBytes { $0[index] = 0xA5 }
            #expect(inline[index] == 0xA5 && inArray[index] == 0xA5 && before[index] == 0)
            var expected = zeros(64)
            expected[index] = 0xA5
            #expect(array(inline.span) == expected && array(inArray.span) == expected)
        }
    }

    @Test("a span of a value that is not kept anywhere shows that value")
    func temporaries() {
        for first in 0..<200 {
            #expect(sum(inline(from: first).span) == 16 * first + 120)
            #expect(sum(inArray(from: first).span) == 16 * first + 120)
        }
    }

    @Test("a span of an array shows its elements", arguments: [0, 1, 7, 4096])
    func arrays(count: Int) {
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
        #expect(array(bytes.span) == bytes)
        #expect(array(([1] + bytes).span) == [1] + bytes)
        let words = (0..<count).map { UInt32(truncatingIfNeeded: $0 &* 977) }
        #expect(words.span.count == count && words.indices.allSatisfy { words.span[$0] == words[$0] })
    }

    @inline(never) private func inline(from first: Int) -> Bytes16 { Bytes16 { UInt8($0 + first) } }

    @inline(never) private func inArray(from first: Int) -> ArrayBytes<Length16> {
        ArrayBytes { UInt8($0 + first) }
    }

    @inline(never) private func sum(_ bytes: Span<UInt8>) -> Int {
        bytes.indices.reduce(0) { $0 + Int(bytes[$1]) }
    }

    private func array(_ bytes: Span<UInt8>) -> [UInt8] { bytes.indices.map { bytes[$0] } }

    private func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }
}

@Suite("A value behind a lock")
struct LockedTests {
    private struct Full: Error {}

    @Test("no change is lost between threads")
    func counting() {
        let count = Locked(0)
        DispatchQueue.concurrentPerform(iterations: 8) { _ in
            for _ in 0..<10_000 { count.with { $0 += 1 } }
        }
        #expect(count.with { $0 } == 80_000)
    }

    @Test("an error is thrown on, and the lock is free afterwards")
    func errors() {
        let count = Locked(0)
        #expect(throws: Full.self) { try count.with { (_) throws(Full) in throw Full() } }
        #expect(count.with { $0 } == 0)
    }
}
