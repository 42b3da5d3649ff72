import CountersignSeal
import CountersignWire
import Testing

@Suite struct HashTests {
    @Test("SHA-256 of FIPS 180-4's examples", arguments: sha256Table)
    func sha256(_ row: (text: String, digest: String)) {
        let bytes = Array(row.text.utf8)
        let whole = SHA256.digest(bytes.span)
        #expect(hex(whole) == row.digest)
        var hash = SHA256()
        for index in bytes.indices { hash.update(bytes.span.extracting(index..<index + 1)) }
        let digest = hash.finish()
        #expect(hex(digest) == row.digest)
    }

    @Test func sha512() {
        let digest = SHA512.digest(Array("abc".utf8).span)
        #expect(hex(digest).hasPrefix("ddaf35a193617abacc417349ae204131"))
        #expect(hex(digest).hasSuffix("2a9ac94fa54ca49f"))
    }

    @Test("MD5 of RFC 1321's suite", arguments: md5Table)
    func md5(_ row: (text: String, digest: String)) {
        var hash = MD5()
        hash.update(Array(row.text.utf8).span)
        let digest = hash.finish()
        #expect(hex(digest) == row.digest)
    }

    @Test("HMAC-SHA256 of RFC 4231", arguments: hmacTable)
    func hmac(_ row: (key: String, message: String, mac: String)) throws {
        let key = try #require(Hex.decode(row.key))
        let message = try #require(Hex.decode(row.message))
        let keyed = HMACSHA256(key: key.span)
        for _ in 0..<2 {
            let mac = keyed.authenticate(message.span)
            #expect(hex(mac) == row.mac)
        }
    }

    @Test(
        "SipHash-2-4-128 of its authors' table",
        arguments: [
            (0, "a3817f04ba25a8e66df67214c7550293"), (1, "da87c1d86b99af44347659119b22fc45"),
            (15, "5493e99933b0a8117e08ec0f97cfc3d9"),
        ])
    func keyedHash(_ row: (length: Int, output: String)) {
        let hash = KeyedHash(key: KeyedHash.Key { UInt8($0) })
        let input = (0..<row.length).map { UInt8($0) }
        var output = hash.hash(input.span)
        let text = withUnsafeBytes(of: &output) { bytes in Array(bytes) }
        #expect(text == Hex.decode(row.output))
    }

    @Test func constantTimeComparesAllBytes() {
        let left = [UInt8](repeating: 7, count: 32)
        #expect(compare(left, left) == .equal)
        for index in left.indices {
            var right = left
            right[index] ^= 1
            #expect(compare(left, right) == .different)
        }
        #expect(compare(left, Array(left.dropLast())) == .different)
        #expect(compare([], []) == .equal)
    }

    // Spans may not enter the macros.
    private func compare(_ left: [UInt8], _ right: [UInt8]) -> ConstantTime.Verdict {
        ConstantTime.equals(left.span, right.span)
    }

    private func hex(_ digest: Digest16) -> String { Hex.encode(digest.span) }
    private func hex(_ digest: Digest32) -> String { Hex.encode(digest.span) }
    private func hex(_ digest: Digest64) -> String { Hex.encode(digest.span) }

    private static let sha256Table: [(text: String, digest: String)] = [
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        ),
    ]

    private static let md5Table: [(text: String, digest: String)] = [
        ("", "d41d8cd98f00b204e9800998ecf8427e"),
        ("abc", "900150983cd24fb0d6963f7d28e17f72"),
        ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
    ]

    private static let hmacTable: [(key: String, message: String, mac: String)] = [
        (
            String(repeating: "0b", count: 20), "4869205468657265",
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
        ),
        (
            "4a656665", "7768617420646f2079612077616e7420666f72206e6f7468696e673f",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        ),
        (
            String(repeating: "aa", count: 131),
            """
            54657374205573696e67204c6172676572205468616e20426c6f636b2d53697a65204b6579202d2048617368204b6579\
            204669727374
            """,
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        ),
    ]
}
