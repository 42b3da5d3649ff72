import CountersignSeal
import Testing

/// Public keys on P-256 as bare points: known answers, and points that are none.
@Suite struct P256Tests {
    /// RFC 6979 §A.2.5: the public key, and its signature of "sample" with SHA-256.
    private static let signing = """
        04\
        60fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb6\
        7903fe1008b8bc99a41ae9e95628bc64f2f1b20c2d7e9f5177a3c294d4462299
        """
    private static let signature = """
        efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716\
        f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8
        """
    /// RFC 5903 §8.1: both parties' keys, and the x coordinate that they agree on.
    private static let scalar = "c88f01f510d9ac3f70a292daa2316de544e9aab8afe84049c62a9c57862d1433"
    private static let own = """
        04\
        dad0b65394221cf9b051e1feca5787d098dfe637fc90b9ef945d0c3772581180\
        5271a0461cdb8252d61f1c456fa3e59ab1f45b33accf5f58389e0577b8990bb3
        """
    private static let peer = """
        04\
        d12dfb5289c8d4f81208b70270398c342296970a0bccb74c736fc7554494bf63\
        56fbf3ca366cc23e8157854c13c58d6aac23f046ada30f8353e74f33039872ab
        """
    private static let agreed = "d6840f6b42f6edafd13116e0e12565202fef8e9ece7dce03812464d04b9442de"

    /// The point at x = 0; the same with x = p, which is no second spelling of it; x = 0 with another y; no
    /// point at all.
    private static let atZero = "04" + String(repeating: "0", count: 64) + itsY
    private static let itsY = "66485c780e2f83d72433bd5d84a06bb6541c2af31dae871728bf856a174f93f4"
    private static let beyondTheField =
        "04ffffffff00000001000000000000000000000000ffffffffffffffffffffffff" + itsY
    private static let besideTheCurve = atZero.dropLast() + "5"
    private static let zeros = "04" + String(repeating: "0", count: 128)

    @Test("a signature is verified under its point, and under no other")
    func verifies() throws {
        let (signature, message) = (bytes(Self.signature), Array("sample".utf8))
        let point = try #require(P256Point(bytes(Self.signing)))
        #expect(point.isOnCurve)
        #expect(point.verify(signature.span, of: message.span) == .equal)
        let prepared = try point.verifyingKey()
        #expect(
            prepared.verify(signature.span, of: message.span) == .equal && prepared.algorithm == .ecdsaP256)
        let der = prepared.der
        let read = try PublicKey(der: der.span)
        #expect(read.der == der, "it is written as OpenSSL writes it")
        #expect(point.verify(signature.span, of: Array("sampler".utf8).span) == .different)
        for index in signature.indices {
            var changed = signature
            changed[index] ^= 1
            #expect(point.verify(changed.span, of: message.span) == .different)
        }
        for wrong in [[], Array(signature.dropLast()), signature + [0], [UInt8](repeating: 0, count: 64)] {
            #expect(point.verify(wrong.span, of: message.span) == .different)
        }
        for other in [Self.own, Self.atZero, String(Self.besideTheCurve), Self.zeros] {
            let other = try #require(P256Point(bytes(other)))
            #expect(other.verify(signature.span, of: message.span) == .different)
        }
    }

    @Test("two agree on what the RFC says they do")
    func agrees() throws {
        let key = try AgreementKey(pkcs8: Secret(copying: Self.pkcs8(bytes(Self.scalar)).span))
        #expect(key.publicPoint == P256Point(bytes(Self.own)))
        let peer = try #require(P256Point(bytes(Self.peer)))
        let agreed = try key.sharedSecret(with: peer).withExposedBytes { bytes in
            bytes.indices.map { bytes[$0] }
        }
        #expect(agreed == bytes(Self.agreed))
    }

    @Test(
        "nothing is agreed with what is no point on the curve",
        arguments: [beyondTheField, String(besideTheCurve), zeros, "04" + String(repeating: "f", count: 128)])
    func refuses(_ text: String) throws {
        let point = try #require(P256Point(bytes(text)))
        #expect(!point.isOnCurve)
        #expect(throws: SealError.self) { try point.verifyingKey() }
        let key = try AgreementKey()
        #expect(throws: SealError.self) { try key.sharedSecret(with: point) }
    }

    @Test("new keys are on the curve, and each is another")
    func fresh() throws {
        #expect(try #require(P256Point(bytes(Self.atZero))).isOnCurve, "what the refused ones are beside of")
        let keys = try (0..<20).map { _ in try AgreementKey() }
        #expect(Set(keys.map(\.publicPoint)).count == keys.count)
        for (one, other) in zip(keys, keys.dropFirst()) {
            #expect(one.publicPoint.isOnCurve)
            #expect(
                try same(one.sharedSecret(with: other.publicPoint), other.sharedSecret(with: one.publicPoint))
            )
        }
    }

    private func same(_ one: Secret, _ other: Secret) -> Bool {
        one.withExposedBytes { one in
            other.withExposedBytes { other in one.indices.allSatisfy { one[$0] == other[$0] } }
        }
    }

    /// PKCS #8 around the bare scalar. Source: RFC 5958 §2, RFC 5915 §3.
    private static func pkcs8(_ scalar: [UInt8]) -> [UInt8] {
        bytes("3041020100301306072a8648ce3d020106082a8648ce3d030107042730250201010420") + scalar
    }

    private static func bytes(_ hex: String) -> [UInt8] {
        let digits = hex.compactMap(\.hexDigitValue)
        return stride(from: 0, to: digits.count - 1, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }

    private func bytes(_ hex: String) -> [UInt8] { Self.bytes(hex) }
}
