#if canImport(CryptoKit)
    import CryptoKit
    import Foundation

    /// A key in CryptoKit, or the bytes of an Ed25519 key for libsodium. RSA and P-384 are supported only on
    /// Linux, where the server runs. The key does not change after `init`, so threads may share it.
    final class KeyHandle: @unchecked Sendable {
        private enum Kind {
            case ed25519([UInt8], seed: Secret?)
            case p256(P256.Signing.PublicKey, private: P256.Signing.PrivateKey?)
        }

        private let kind: Kind

        private init(_ kind: Kind) { self.kind = kind }

        private convenience init(_ key: P256.Signing.PrivateKey) {
            self.init(.p256(key.publicKey, private: key))
        }

        /// Parses a SubjectPublicKeyInfo that is all of `der`; nil if it is not of an Ed25519 or P-256 key.
        convenience init?(subjectPublicKeyInfo der: Span<UInt8>) {
            let bytes = der.indices.map { der[$0] }
            if let point = P256Point(subjectPublicKeyInfo: bytes) {
                self.init(point)
            } else if bytes.count == 44, bytes.starts(with: Ed25519.publicPrefix) {
                self.init(.ed25519(Array(bytes.suffix(32)), seed: nil))
            } else {
                return nil
            }
        }

        /// Parses a PKCS #8 PrivateKeyInfo; nil if it is not of an Ed25519 or P-256 key.
        convenience init?(privateKeyInfo der: Secret) {
            let isEd25519 = der.withExposedBytes { bytes in
                bytes.count == 48
                    && Ed25519.privatePrefix.indices.allSatisfy { bytes[$0] == Ed25519.privatePrefix[$0] }
            }
            if isEd25519 {
                let seed = der.part(16..<48)
                guard let signer = Ed25519.Signer(seed: seed) else { return nil }
                self.init(.ed25519(signer.publicHalf, seed: seed))
            } else {
                let key = der.withExposedBytes { bytes in
                    bytes.withUnsafeBytes { try? P256.Signing.PrivateKey(derRepresentation: $0) }
                }
                guard let key else { return nil }
                self.init(key)
            }
        }

        /// The public key at this point; nil if the point is not on the curve.
        convenience init?(_ point: P256Point) {
            guard let key = try? P256.Signing.PublicKey(x963Representation: point.bytes) else { return nil }
            self.init(.p256(key, private: nil))
        }

        /// Generates a key. CryptoKit never fails; other libraries may.
        static func randomP256() -> KeyHandle? { KeyHandle(P256.Signing.PrivateKey()) }

        /// The key's algorithm.
        func algorithm() throws(SealError) -> KeyAlgorithm? {
            switch kind {
            case .ed25519: .ed25519
            case .p256: .ecdsaP256
            }
        }

        /// Nothing is left to check: CryptoKit makes no key from a point that is not on its curve.
        func check() throws(SealError) {}

        /// The public key as SubjectPublicKeyInfo.
        var subjectPublicKeyInfo: [UInt8] {
            p256Point?.subjectPublicKeyInfo ?? Ed25519.publicPrefix + (rawPublicKey ?? [])
        }

        /// The private key as PKCS #8 PrivateKeyInfo; nil for public keys.
        var privateKeyInfo: Secret? {
            switch kind {
            case .ed25519(_, let seed):
                return seed.map { Secret(joining: [Secret(copying: Ed25519.privatePrefix.span), $0]) }
            case .p256(_, let key):
                guard var der = key?.derRepresentation else { return nil }
                defer { der.resetBytes(in: der.startIndex..<der.endIndex) }
                return der.withUnsafeBytes { Secret(copying: Span(_unsafeBytes: $0)) }
            }
        }

        /// An Ed25519 public key, 32 bytes.
        var rawPublicKey: [UInt8]? { if case .ed25519(let bytes, _) = kind { bytes } else { nil } }

        /// An Ed25519 key's seed, 32 bytes.
        var rawPrivateKey: Secret? { if case .ed25519(_, let seed) = kind { seed } else { nil } }

        /// The point of the public key; nil for keys that are not on P-256.
        var p256Point: P256Point? { p256Public.flatMap { P256Point(Array($0.x963Representation)) } }

        var p256Public: P256.Signing.PublicKey? { if case .p256(let key, _) = kind { key } else { nil } }
        var p256Private: P256.Signing.PrivateKey? { if case .p256(_, let key) = kind { key } else { nil } }

        /// The x coordinate of the product with another key's point, 32 bytes. Source: NIST SP 800-56A
        /// §5.7.1.2.
        func sharedSecret(with peer: KeyHandle) throws(SealError) -> Secret {
            guard var scalar = p256Private?.rawRepresentation, let point = peer.p256Public else {
                throw SealError.unusableKey(expected: "a point on P-256")
            }
            defer { scalar.resetBytes(in: scalar.startIndex..<scalar.endIndex) }
            guard let key = try? P256.KeyAgreement.PrivateKey(rawRepresentation: scalar),
                let other = try? P256.KeyAgreement.PublicKey(x963Representation: point.x963Representation),
                let product = try? key.sharedSecretFromKeyAgreement(with: other)
            else { throw SealError.unusableKey(expected: "a point on P-256") }
            return product.withUnsafeBytes { Secret(copying: Span(_unsafeBytes: $0)) }
        }
    }
#endif
