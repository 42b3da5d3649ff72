import CountersignSeal
import Testing

/// A sealed box opens for its receiver and its purpose, unaltered, and is never sealed to a known secret.
@Suite struct SealedBoxTests {
    private static let purpose = Array("test".utf8)

    private static func receiver() throws -> SealedBox.Receiver {
        try #require(SealedBox.Receiver(Secret(random: SealedBox.Receiver.count)))
    }

    private static func box(for receiver: SealedBox.Receiver) throws -> [UInt8] {
        try #require(
            SealedBox.seal(
                AEADTests.secret([1, 2, 3]), to: receiver.publicHalf, for: SealedBoxTests.purpose))
    }

    @Test func opens() throws {
        let receiver = try SealedBoxTests.receiver()
        let box = try SealedBoxTests.box(for: receiver)
        #expect(box.count == 3 + SealedBox.overhead)
        let opened = try receiver.open(box, for: SealedBoxTests.purpose)
        #expect(AEADTests.bytes(opened) == [1, 2, 3])
    }

    @Test("an altered byte of each part, a missing byte, another purpose and another receiver")
    func altered() throws {
        let receiver = try SealedBoxTests.receiver()
        let box = try SealedBoxTests.box(for: receiver)
        for index in [0, 31, 32, 34, 35, box.count - 1] {
            var changed = box
            changed[index] ^= 1
            #expect(throws: SealError.self, "byte \(index)") {
                try receiver.open(changed, for: SealedBoxTests.purpose)
            }
        }
        #expect(throws: SealError.self) {
            try receiver.open(Array(box.dropLast()), for: SealedBoxTests.purpose)
        }
        #expect(throws: SealError.self) { try receiver.open([], for: SealedBoxTests.purpose) }
        #expect(throws: SealError.self) { try receiver.open(box, for: Array("other".utf8)) }
        let other = try SealedBoxTests.receiver()
        #expect(throws: SealError.self) { try other.open(box, for: SealedBoxTests.purpose) }
    }

    @Test("a public key of small order has no box, because the shared secret would be known")
    func smallOrder() {
        for first: UInt8 in [0, 1] {
            let point = [first] + [UInt8](repeating: 0, count: 31)
            let box = SealedBox.seal(
                AEADTests.secret([1, 2, 3]), to: point, for: SealedBoxTests.purpose)
            #expect(box == nil)
        }
    }
}
