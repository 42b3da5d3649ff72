import CountersignSeal
import CountersignWire
import Testing

@Suite struct RistrettoTests {
    @Test(
        "multiples of the generator, of RFC 9496, appendix A.1",
        arguments: [
            (1, "e2f2ae0a6abc4e71a884a961c500515f58e30b6aa582dd8db6a65945e08d2d76"),
            (2, "6a493210f7499cd17fecb510ae0cea23a110e8d5b901f8acadd3095c73a3b919"),
            (3, "94741f5d5d52755ece4f23f044ee27d5d1ea1e2bd196b462166b16152a9d0259"),
        ])
    func multiples(_ row: (factor: UInt8, encoding: String)) throws {
        let factor = try #require(scalar(row.factor))
        let product = try Ristretto255.Element(generatorTimes: factor)
        #expect(product.bytes == Hex.decode(row.encoding))
        let generator = try Ristretto255.Element(generatorTimes: #require(scalar(1)))
        #expect(try generator.times(factor) == product)
        #expect(try generator.secretProduct(factor).withExposedBytes { Hex.encode($0) } == row.encoding)
        #expect(try product.times(factor.inverse()) == generator)
    }

    /// Source: RFC 9496, appendix A.2 (some of each kind), and the identity, which is an encoding but no key.
    static let illegalEncodings = [
        "00ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        "f3ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "ed57ffd8c914fb201471d1c3d245ce3c746fcbe63a3679d51b6a516ebebe0e20",
        "26948d35ca62e643e26a83177332e6b6afeb9d08e4268b650f1f5bbd8d81d371",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "e2f2ae0a6abc4e71a884a961c500515f58e30b6aa582dd8db6a65945e08d2df6",
        "0000000000000000000000000000000000000000000000000000000000000000",
        "e2f2ae0a6abc4e71a884a961c500515f58e30b6aa582dd8db6a65945e08d2d", "",
    ]

    @Test("what is no element, or the identity, is refused", arguments: illegalEncodings)
    func illegal(_ encoding: String) throws {
        let bytes = try #require(Hex.decode(encoding))
        #expect(Ristretto255.Element(bytes) == nil)
    }

    @Test(
        "a scalar has one spelling, and is not zero",
        arguments: [
            // The order, one more, the largest 32 bytes, zero, a byte too few.
            "edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010",
            "eed3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010",
            String(repeating: "ff", count: 32), String(repeating: "00", count: 32),
            String(repeating: "01", count: 31),
        ])
    func illegalScalar(_ encoding: String) throws {
        let bytes = try #require(Hex.decode(encoding))
        #expect(Ristretto255.Scalar(Secret(copying: bytes.span)) == nil)
    }

    @Test func theLargestScalarIsTaken() throws {
        let bytes = try #require(
            Hex.decode("ecd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010"))
        let scalar = try #require(Ristretto255.Scalar(Secret(copying: bytes.span)))
        // It is -1, its own inverse.
        let inverse = try scalar.inverse()
        #expect(inverse.bytes.withExposedBytes { Hex.encode($0) } == Hex.encode(bytes.span))
    }

    private func scalar(_ factor: UInt8) -> Ristretto255.Scalar? {
        let bytes = [factor] + [UInt8](repeating: 0, count: 31)
        return Ristretto255.Scalar(Secret(copying: bytes.span))
    }
}
