import CountersignSodium

/// The prime-order group ristretto255. Source: RFC 9496.
package enum Ristretto255 {
    /// A number from 1 to the group's order less one. Always a secret here, so it is held as one.
    package struct Scalar: Sendable {
        package static let count = Int(crypto_core_ristretto255_SCALARBYTES)

        /// 32 bytes, little-endian, below the order.
        package let bytes: Secret

        /// Nil where `bytes` are not the one spelling of a scalar: 32 bytes, below the order, not zero.
        package init?(_ bytes: Secret) {
            guard bytes.count == Scalar.count else { return nil }
            guard let reduced = Scalar(reducing: Secret(joining: [bytes, Scalar.highZeros])) else { return nil }
            let same = bytes.withExposedBytes { given in
                reduced.bytes.withExposedBytes { ConstantTime.equals(given, $0) }
            }
            guard same == .equal else { return nil }
            self.bytes = bytes
        }

        /// 64 uniform bytes, little-endian, modulo the order: as good as uniform. Nil where that is zero, which no one
        /// will see. Source: RFC 9496 §4.4.
        package init?(reducing wide: Secret) {
            guard wide.count == Int(crypto_core_ristretto255_NONREDUCEDSCALARBYTES) else { return nil }
            bytes = Secret(count: Scalar.count) { target in
                wide.withPointer { crypto_core_ristretto255_scalar_reduce(target, $0) }
            }
            let bytes = bytes
            guard bytes.withPointer({ sodium_is_zero($0, bytes.count) }) == 0 else { return nil }
        }

        /// Uniform, from 64 bytes of `random`.
        package static func random(_ random: some RandomSource) throws(CryptographyFault) -> Scalar {
            guard let scalar = Scalar(reducing: random.secret(64)) else {
                throw CryptographyFault.impossible
            }
            return scalar
        }

        /// The scalar whose product with this one is one.
        package func inverse() throws(CryptographyFault) -> Scalar {
            var status: CInt = -1
            let inverse = Secret(count: Scalar.count) { target in
                status = bytes.withPointer { crypto_core_ristretto255_scalar_invert(target, $0) }
            }
            guard status == 0 else { throw CryptographyFault.impossible }
            return Scalar(known: inverse)
        }

        private init(known bytes: Secret) { self.bytes = bytes }

        private static let highZeros = Secret(copying: [UInt8](repeating: 0, count: 32).span)
    }
}
