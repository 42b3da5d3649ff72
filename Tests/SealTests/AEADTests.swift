import CountersignSeal
import Testing

@Suite struct AEADTests {
    static func key(_ byte: UInt8) throws -> MasterKey {
        try #require(MasterKey(secret([UInt8](repeating: byte, count: 32))))
    }

    static func secret(_ bytes: [UInt8]) -> Secret { Secret(copying: bytes.span) }

    static func bytes(_ secret: Secret) -> [UInt8] {
        secret.withExposedBytes { span in (0..<span.count).map { span[$0] } }
    }

    static let place = SealBinding(kind: "release-secret", app: "demo", row: "r_1", epoch: 3)

    @Test("opens what it sealed", arguments: [0, 1, 32, 4096])
    func roundTrip(_ count: Int) throws {
        let plain = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
        let key = try Self.key(1)
        let sealed = key.seal(Self.secret(plain), as: Self.place)
        #expect(sealed.count == count + 41)
        #expect(Self.bytes(try key.open(sealed, as: Self.place)) == plain)
    }

    @Test(
        "a value that was put elsewhere does not open",
        arguments: [
            SealBinding(kind: "policy", app: "demo", row: "r_1", epoch: 3),
            SealBinding(kind: "release-secret", app: "other", row: "r_1", epoch: 3),
            SealBinding(kind: "release-secret", app: "demo", row: "r_2", epoch: 3),
            SealBinding(kind: "release-secret", app: "demo", row: "r_1", epoch: 2),
            // The same letters, split elsewhere.
            SealBinding(kind: "release-secretd", app: "emo", row: "r_1", epoch: 3),
            SealBinding(kind: "release-secret", app: "demor", row: "_1", epoch: 3),
        ])
    func elsewhere(_ other: SealBinding) throws {
        let key = try Self.key(1)
        let sealed = key.seal(Self.secret([1, 2, 3]), as: Self.place)
        _ = try key.open(sealed, as: Self.place)
        #expect(throws: SealError.notOpened) { try key.open(sealed, as: other) }
    }

    @Test func anotherKeyDoesNotOpen() throws {
        let sealed = try Self.key(1).seal(Self.secret([1, 2, 3]), as: Self.place)
        #expect(throws: SealError.notOpened) { try Self.key(2).open(sealed, as: Self.place) }
    }

    @Test func everyBitCounts() throws {
        let key = try Self.key(1)
        let sealed = key.seal(Self.secret([1, 2, 3]), as: Self.place)
        for bit in 0..<sealed.count * 8 {
            var altered = sealed
            altered[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(throws: SealError.notOpened) { try key.open(altered, as: Self.place) }
        }
        for count in 0..<sealed.count {
            #expect(throws: SealError.notOpened) { try key.open(Array(sealed[..<count]), as: Self.place) }
        }
    }

    @Test func nonceIsDrawnAnew() throws {
        let key = try Self.key(1)
        let sealed = (0..<100).map { _ in key.seal(Self.secret([7]), as: Self.place) }
        #expect(Set(sealed).count == 100)
    }
}

@Suite struct MasterKeyTests {
    static let hex = String(repeating: "0123456789abcdef", count: 4)
    static let base64url = "ASNFZ4mrze8BI0VniavN7wEjRWeJq83vASNFZ4mrze8"

    @Test(
        "texts that are a key, and the same one",
        arguments: [hex, hex.uppercased(), base64url, base64url + "="])
    func texts(_ text: String) throws {
        let bytes = Array(text.utf8)
        let parsed = MasterKey(text: bytes.span)
        let key = try #require(parsed)
        #expect(AEADTests.bytes(key.text()) == Array(Self.base64url.utf8))
    }

    @Test(
        "texts that are none",
        arguments: [
            "", "short", String(hex.dropLast()), hex + "0", hex.replacing("f", with: "g"), base64url + "==",
            "+" + base64url.dropFirst(),
            String(base64url.dropLast()) + "9", String(repeating: "A", count: 42), hex + "\n",
        ])
    func noTexts(_ text: String) {
        let bytes = Array(text.utf8)
        let parsed = MasterKey(text: bytes.span)
        #expect(parsed == nil)
    }

    @Test func idNamesTheKey() throws {
        let ids = try (0..<50).map { try AEADTests.key(UInt8($0)).id }
        #expect(Set(ids).count == 50)
        #expect(try AEADTests.key(3).id == AEADTests.key(3).id)
    }

    @Test("only 32 bytes", arguments: [0, 16, 31, 33])
    func length(_ count: Int) { #expect(MasterKey(Secret(random: count)) == nil) }

    @Test func answerKeyIsEd25519() throws {
        // Source: RFC 8032 §7.1, TEST 2.
        let seed: [UInt8] = [
            0x4c, 0xcd, 0x08, 0x9b, 0x28, 0xff, 0x96, 0xda, 0x9d, 0xb6, 0xc3, 0x46, 0xec, 0x11, 0x4e, 0x0f,
            0x5b, 0x8a, 0x31, 0x9f, 0x35, 0xab, 0xa6, 0x24, 0xda, 0x8c, 0xf6, 0xed, 0x4f, 0xb8, 0xa6, 0xfb,
        ]
        let expected: [UInt8] = [
            0x3d, 0x40, 0x17, 0xc3, 0xe8, 0x43, 0x89, 0x5a, 0x92, 0xb7, 0x0a, 0xa7, 0x4d, 0x1b, 0x7e, 0xbc,
            0x9c, 0x98, 0x2c, 0xcf, 0x2e, 0xc4, 0x96, 0x8c, 0xc0, 0xcd, 0x55, 0xf1, 0x2a, 0xf4, 0x66, 0x0c,
        ]
        #expect(AnswerKey.publicHalf(of: AEADTests.secret(seed)) == expected)
        #expect(AnswerKey.publicHalf(of: Secret(random: 31)) == nil)
    }
}
