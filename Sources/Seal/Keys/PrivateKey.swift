/// A key pair that signs. The private key is wiped with it and never printed.
package final class PrivateKey: Sendable, CustomStringConvertible, CustomReflectable {
    private enum Signer: Sendable {
        case ed25519(Ed25519.Signer)
        case ecdsa(ECDSA)
        case rsa(RSA)
    }

    package let publicKey: PublicKey
    private let signer: Signer

    package var algorithm: KeyAlgorithm { publicKey.algorithm }

    /// Reads a PEM file with a PKCS #8 private key. `algorithm` is required for RSA.
    package convenience init(pem: Span<UInt8>, algorithm: KeyAlgorithm? = nil) throws(SealError) {
        let (kind, der) = try PEM.read(pem)
        guard kind == .privateKey, let key = KeyHandle(privateKeyInfo: der) else {
            throw SealError.unusableKey(expected: "a private key as PKCS #8")
        }
        try self.init(key, algorithm: algorithm)
    }

    /// Generates a key pair for ed25519 or ecdsa-p256-sha256.
    package convenience init(random algorithm: KeyAlgorithm) throws(SealError) {
        switch algorithm {
        case .ed25519: try self.init(ed25519Seed: Secret(random: 32))
        case .ecdsaP256:
            guard let key = KeyHandle.randomP256() else {
                throw SealError.unusableKey(expected: "a P-256 key that the library makes")
            }
            try self.init(key, algorithm: .ecdsaP256)
        default:
            throw SealError.unusableKey(
                expected: "ed25519 or ecdsa-p256-sha256; other keys are not made here")
        }
    }

    private init(_ key: KeyHandle, algorithm: KeyAlgorithm?) throws(SealError) {
        publicKey = try PublicKey(key, algorithm: algorithm)
        switch publicKey.algorithm {
        case .ed25519:
            guard let seed = key.rawPrivateKey, let own = Ed25519.Signer(seed: seed) else {
                throw SealError.unusableKey(expected: "an Ed25519 private key of 32 bytes")
            }
            signer = .ed25519(own)
        case .ecdsaP256: signer = .ecdsa(try ECDSA(.p256, key: key, purpose: .sign))
        case .ecdsaP384: signer = .ecdsa(try ECDSA(.p384, key: key, purpose: .sign))
        case .rsaPSS: signer = .rsa(try RSA(.pss, key: key, purpose: .sign))
        case .rsaV15:
            throw SealError.unusableKey(
                expected: "another algorithm: rsa-v1_5-sha256 is verified, and not signed with, here")
        case .hmacSHA256:
            throw SealError.unusableKey(expected: "an algorithm with public keys; hmac-sha256 has none")
        }
    }

    /// A P-256 key in the form of ``AgreementKey/pkcs8``; devices store both of their keys in this form.
    package convenience init(p256PKCS8 der: Secret) throws(SealError) {
        guard let key = KeyHandle(privateKeyInfo: der) else {
            throw SealError.unusableKey(expected: "a private key as PKCS #8")
        }
        try self.init(key, algorithm: .ecdsaP256)
    }

    /// An Ed25519 key from its seed of 32 bytes.
    package init(ed25519Seed seed: Secret) throws(SealError) {
        guard let own = Ed25519.Signer(seed: seed) else {
            throw SealError.unusableKey(expected: "an Ed25519 seed of 32 bytes")
        }
        publicKey = try PublicKey(ed25519: own.publicHalf)
        signer = .ed25519(own)
    }

    /// The signature of `message` in RFC 9421's form for the algorithm; nil if the library fails.
    package func sign(_ message: Span<UInt8>) -> [UInt8]? {
        switch signer {
        case .ed25519(let key): key.sign(message)
        case .ecdsa(let key): key.sign(message)
        case .rsa(let key): key.sign(message)
        }
    }

    /// The PEM file of the Ed25519 private key with this seed. Source: RFC 8410 §7.
    package static func pem(ed25519Seed seed: Secret) -> Secret {
        seed.withExposedBytes { seed in
            var der = Bytes64()
            let prefix = Ed25519.privatePrefix
            for index in prefix.indices { der[index] = prefix[index] }
            for index in 0..<min(seed.count, 32) { der[prefix.count + index] = seed[index] }
            let text = PEM.write(der.span.extracting(0..<48), kind: .privateKey)
            for index in 0..<48 { der[index] = 0 }
            return text
        }
    }

    package var description: String { "<private key for \(algorithm.rawValue)>" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
