import CountersignSodium

extension Ristretto255 {
    /// An element of the group that is not the identity, in its one encoding. Source: RFC 9496 §4.3.
    package struct Element: Sendable, Equatable {
        package static let count = Int(crypto_core_ristretto255_BYTES)

        /// 32 bytes. Public: a product that is to stay secret is made by ``secretProduct(_:)``.
        package let bytes: [UInt8]

        /// Nil where `bytes` are not the encoding of an element, or are the identity's, which would make every product
        /// known.
        package init?(_ bytes: [UInt8]) {
            // libsodium 1.0.18 overlooks the highest bit, which gives each element a second spelling.
            guard bytes.count == Element.count, bytes[Element.count - 1] < 0x80,
                sodium_is_zero(bytes, bytes.count) == 0, crypto_core_ristretto255_is_valid_point(bytes) == 1
            else { return nil }
            self.bytes = bytes
        }

        /// The element that 64 uniform bytes choose. Nil where it is the identity, which no one will see.
        /// Source: RFC 9496 §4.3.4.
        package init?(choosing uniform: Secret) {
            guard uniform.count == Int(crypto_core_ristretto255_HASHBYTES) else { return nil }
            var bytes = [UInt8](repeating: 0, count: Element.count)
            uniform.withPointer { _ = crypto_core_ristretto255_from_hash(&bytes, $0) }
            guard sodium_is_zero(bytes, bytes.count) == 0 else { return nil }
            self.bytes = bytes
        }

        /// The generator, `scalar` times.
        package init(generatorTimes scalar: Scalar) throws(CryptographyFault) {
            var bytes = [UInt8](repeating: 0, count: Element.count)
            let status = scalar.bytes.withPointer { crypto_scalarmult_ristretto255_base(&bytes, $0) }
            guard status == 0 else { throw CryptographyFault.impossible }
            self.bytes = bytes
        }

        /// The sum of `scalar` times this element, to be published.
        package func times(_ scalar: Scalar) throws(CryptographyFault) -> Element {
            var product = [UInt8](repeating: 0, count: Element.count)
            let status = scalar.bytes.withPointer { crypto_scalarmult_ristretto255(&product, $0, bytes) }
            guard status == 0 else { throw CryptographyFault.impossible }
            return Element(known: product)
        }

        /// The same, kept secret: for who agrees on a key.
        package func secretProduct(_ scalar: Scalar) throws(CryptographyFault) -> Secret {
            try Secret(count: Element.count) { (target: UnsafeMutableRawPointer) throws(CryptographyFault) in
                let status = scalar.bytes.withPointer { crypto_scalarmult_ristretto255(target, $0, bytes) }
                guard status == 0 else { throw CryptographyFault.impossible }
            }
        }

        private init(known bytes: [UInt8]) { self.bytes = bytes }
    }
}
