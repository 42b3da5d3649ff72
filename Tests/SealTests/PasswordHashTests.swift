import CountersignSeal
import CountersignWire
import Testing

@Suite struct PasswordHashTests {
    private func secret(_ text: String) -> Secret { Secret(copying: Array(text.utf8).span) }

    private func cheap() throws -> HashCost { try #require(HashCost(memory: 8, passes: 1)) }

    @Test func matchesItsOwnPasswordOnly() throws {
        let hash = try PasswordHash(of: secret("open sesame"), cost: cheap())
        #expect(try hash.matches(secret("open sesame")) == .equal)
        for other in ["", "open sesam", "open sesame ", "Open sesame"] {
            #expect(try hash.matches(secret(other)) == .different)
        }
    }

    @Test func saltsDiffer() throws {
        let first = try PasswordHash(of: secret("x"), cost: cheap())
        let second = try PasswordHash(of: secret("x"), cost: cheap())
        #expect(first != second)
    }

    /// Made by PyPI's `argon2-cffi`: secret `password`, salt `somesaltsomesalt`, m=256 KiB, t=2, p=1, 32
    /// bytes.
    @Test func knownAnswer() throws {
        let layout = "01" + "00000100" + "00000002"
        let bytes = try #require(Hex.decode(layout + "736f6d6573616c74736f6d6573616c74" + argon2idFigure))
        let hash = try #require(PasswordHash(encoded: Secret(copying: bytes.span)))
        #expect(try hash.matches(secret("password")) == .equal)
        #expect(try hash.matches(secret("Password")) == .different)
    }

    @Test func encodedReadsBack() throws {
        let hash = try PasswordHash(of: secret("x"), cost: cheap())
        let bytes = AEADTests.bytes(hash.encoded)
        #expect(PasswordHash(encoded: hash.encoded) == hash)
        for count in 0..<bytes.count {
            #expect(PasswordHash(encoded: Secret(copying: bytes.span.extracting(0..<count))) == nil)
        }
        #expect(PasswordHash(encoded: Secret(copying: (bytes + [0]).span)) == nil)
    }

    @Test(
        "costs that no row may ask for",
        arguments: [(7, 1), (65_537, 1), (8, 0), (8, 17), (Int.max, 1), (-1, -1)])
    func costs(_ row: (memory: Int, passes: Int)) throws {
        #expect(HashCost(memory: row.memory, passes: row.passes) == nil)
        var bytes = AEADTests.bytes(try PasswordHash(of: secret("x"), cost: cheap()).encoded)
        for (start, number) in [(1, row.memory), (5, row.passes)] {
            for index in 0..<4 {
                bytes[start + index] = UInt8(truncatingIfNeeded: number >> (24 - 8 * index))
            }
        }
        #expect(PasswordHash(encoded: Secret(copying: bytes.span)) == nil)
    }

    /// Source: RFC 2202 §2.
    @Test("HMAC-MD5 of RFC 2202", arguments: hmacTable)
    func hmac(_ row: (key: [UInt8], message: [UInt8], mac: String)) {
        #expect(Hex.encode(HMACMD5.authenticate(row.message.span, key: row.key.span).span) == row.mac)
    }
}

private let argon2idFigure = "cab746b4621993fdc91ec50787980b414a90a692f0bc68dfe19f9c25b3cba9ec"

private let hmacTable: [(key: [UInt8], message: [UInt8], mac: String)] = [
    ([UInt8](repeating: 0x0B, count: 16), Array("Hi There".utf8), "9294727a3638bb1c13f48ef8158bfc9d"),
    (Array("Jefe".utf8), Array("what do ya want for nothing?".utf8), "750c783e6ab0b503eaa86e310a5db738"),
    (
        [UInt8](repeating: 0xAA, count: 80),
        Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8),
        "6b1ab7fe4bd7bf8f0b62e6ce61b9d0cd"
    ),
]
