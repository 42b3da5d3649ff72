import CountersignSodium

/// The prime-order group ristretto255. Source: RFC 9496.
package enum Ristretto255 {
    /// A number from 1 to the group's order minus 1. All scalars here are secret.
    package struct Scalar: Sendable {
        package static let count = Int(crypto_core_ristretto255_SCALARBYTES)

        /// 32 bytes, little-endian, below the order.
        package let bytes: Secret

        /// Nil unless `bytes` are the canonical encoding of a scalar: 32 bytes, below the order, not zero.
        package init?(_ bytes: Secret) {
            guard bytes.count == Scalar.count else { return nil }
            guard let reduced = Scalar(reducing: Secret(joining: [bytes, Scalar.highZeros])) else {
                return nil
            }
            let same = bytes.withExposedBytes { given in
                reduced.bytes.withExposedBytes { ConstantTime.equals(given, $0) }
            }
            guard same == .equal else { return nil }
            self.bytes = bytes
        }

        /// 64 uniform bytes, little-endian, modulo the order; the bias is negligible. Nil if the result is
        /// zero, which has negligible probability. Source: RFC 9496 §4.4.
        package init?(reducing wide: Secret) {
            guard wide.count == Int(crypto_core_ristretto255_NONREDUCEDSCALARBYTES) else { return nil }
            bytes = Secret(count: Scalar.count) { target in
                wide.withPointer { crypto_core_ristretto255_scalar_reduce(target, $0) }
            }
            let bytes = bytes
            guard bytes.withPointer({ sodium_is_zero($0, bytes.count) }) == 0 else { return nil }
        }

        /// A uniform scalar from 64 bytes of `random`.
        package static func random(_ random: some RandomSource) throws(SealError) -> Scalar {
            guard let scalar = Scalar(reducing: random.secret(64)) else {
                throw SealError.impossible
            }
            return scalar
        }

        /// The multiplicative inverse.
        package func inverse() throws(SealError) -> Scalar {
            var status: CInt = -1
            let inverse = Secret(count: Scalar.count) { target in
                status = bytes.withPointer { crypto_core_ristretto255_scalar_invert(target, $0) }
            }
            guard status == 0 else { throw SealError.impossible }
            return Scalar(known: inverse)
        }

        private init(known bytes: Secret) { self.bytes = bytes }

        private static let highZeros = Secret(copying: [UInt8](repeating: 0, count: 32).span)
    }
}

extension Ristretto255 {
    /// An element of the group other than the identity, in its canonical encoding. Source: RFC 9496 §4.3.
    package struct Element: Sendable, Equatable {
        package static let count = Int(crypto_core_ristretto255_BYTES)

        /// 32 bytes. Public: ``secretProduct(_:)`` makes a product that stays secret.
        package let bytes: [UInt8]

        /// Nil if `bytes` are not the encoding of an element, or are that of the identity, whose products are
        /// all known.
        package init?(_ bytes: [UInt8]) {
            // libsodium 1.0.18 ignores the highest bit, so each element would have a second encoding.
            guard bytes.count == Element.count, bytes[Element.count - 1] < 0x80,
                sodium_is_zero(bytes, bytes.count) == 0, crypto_core_ristretto255_is_valid_point(bytes) == 1
            else { return nil }
            self.bytes = bytes
        }

        /// Maps 64 uniform bytes to an element. Nil if it is the identity, which has negligible probability.
        /// Source: RFC 9496 §4.3.4.
        package init?(choosing uniform: Secret) {
            guard uniform.count == Int(crypto_core_ristretto255_HASHBYTES) else { return nil }
            var bytes = [UInt8](repeating: 0, count: Element.count)
            uniform.withPointer { _ = crypto_core_ristretto255_from_hash(&bytes, $0) }
            guard sodium_is_zero(bytes, bytes.count) == 0 else { return nil }
            self.bytes = bytes
        }

        /// The product of the generator and `scalar`.
        package init(generatorTimes scalar: Scalar) throws(SealError) {
            var bytes = [UInt8](repeating: 0, count: Element.count)
            let status = scalar.bytes.withPointer { crypto_scalarmult_ristretto255_base(&bytes, $0) }
            guard status == 0 else { throw SealError.impossible }
            self.bytes = bytes
        }

        /// The product of this element and `scalar`, which becomes public.
        package func times(_ scalar: Scalar) throws(SealError) -> Element {
            var product = [UInt8](repeating: 0, count: Element.count)
            let status = scalar.bytes.withPointer { crypto_scalarmult_ristretto255(&product, $0, bytes) }
            guard status == 0 else { throw SealError.impossible }
            return Element(known: product)
        }

        /// The product as a secret, for key agreement.
        package func secretProduct(_ scalar: Scalar) throws(SealError) -> Secret {
            try Secret(count: Element.count) { (target: UnsafeMutableRawPointer) throws(SealError) in
                let status = scalar.bytes.withPointer { crypto_scalarmult_ristretto255(target, $0, bytes) }
                guard status == 0 else { throw SealError.impossible }
            }
        }

        private init(known bytes: [UInt8]) { self.bytes = bytes }
    }
}
