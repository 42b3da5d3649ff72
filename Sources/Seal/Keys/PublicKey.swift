/// A key that verifies signatures. It is public; its algorithm is fixed with it.
package final class PublicKey: Sendable {
    private enum Verifier: Sendable {
        case ed25519(Ed25519.Verifier)
        case ecdsa(ECDSA)
        case rsa(RSA)
    }

    package let algorithm: KeyAlgorithm
    /// The key as SubjectPublicKeyInfo in DER. Source: RFC 5280 §4.1.
    package let der: [UInt8]
    private let verifier: Verifier

    /// `algorithm` is required for RSA, which has two; for other keys it may be nil, and otherwise must
    /// match.
    package convenience init(der: Span<UInt8>, algorithm: KeyAlgorithm? = nil) throws(SealError) {
        guard let key = KeyHandle(subjectPublicKeyInfo: der) else {
            throw SealError.unusableKey(expected: "a public key as SubjectPublicKeyInfo")
        }
        try self.init(key, algorithm: algorithm)
    }

    /// Reads a PEM file with a public key, or with a private key, whose public key is used.
    package convenience init(pem: Span<UInt8>, algorithm: KeyAlgorithm? = nil) throws(SealError) {
        let (kind, der) = try PEM.read(pem)
        switch kind {
        case .publicKey:
            guard let key = der.withExposedBytes({ KeyHandle(subjectPublicKeyInfo: $0) }) else {
                throw SealError.unusableKey(expected: "a public key as SubjectPublicKeyInfo")
            }
            try self.init(key, algorithm: algorithm)
        case .privateKey:
            guard let key = KeyHandle(privateKeyInfo: der) else {
                throw SealError.unusableKey(expected: "a private key as PKCS #8")
            }
            try self.init(key, algorithm: algorithm)
        }
    }

    /// An Ed25519 key from its 32 bytes.
    package convenience init(ed25519 bytes: [UInt8]) throws(SealError) {
        guard bytes.count == 32 else {
            throw SealError.unusableKey(expected: "an Ed25519 public key of 32 bytes")
        }
        try self.init(der: (Ed25519.publicPrefix + bytes).span, algorithm: .ed25519)
    }

    /// A P-256 key for ecdsa-p256-sha256; throws if the point is not on the curve.
    init(_ point: P256Point) throws(SealError) {
        guard let key = KeyHandle(point) else { throw SealError.unusableKey(expected: "a point on P-256") }
        algorithm = .ecdsaP256
        der = point.subjectPublicKeyInfo
        verifier = .ecdsa(try ECDSA(.p256, key: key, purpose: .verify))
    }

    init(_ key: KeyHandle, algorithm wanted: KeyAlgorithm?) throws(SealError) {
        let algorithm = try PublicKey.algorithm(of: key, wanted: wanted)
        try key.check()
        self.algorithm = algorithm
        der = key.subjectPublicKeyInfo
        switch algorithm {
        case .ed25519: verifier = .ed25519(try Ed25519.Verifier(key.rawPublicKey ?? []))
        case .ecdsaP256: verifier = .ecdsa(try ECDSA(.p256, key: key, purpose: .verify))
        case .ecdsaP384: verifier = .ecdsa(try ECDSA(.p384, key: key, purpose: .verify))
        case .rsaPSS: verifier = .rsa(try RSA(.pss, key: key, purpose: .verify))
        case .rsaV15: verifier = .rsa(try RSA(.v15, key: key, purpose: .verify))
        case .hmacSHA256:
            throw SealError.unusableKey(expected: "an algorithm with public keys; hmac-sha256 has none")
        }
    }

    /// The algorithm of a key, if it matches the one that the caller wants.
    static func algorithm(of key: KeyHandle, wanted: KeyAlgorithm?) throws(SealError) -> KeyAlgorithm {
        switch (try key.algorithm(), wanted) {
        case (let own?, nil): return own
        case (let own?, let wanted?):
            guard own == wanted else {
                throw SealError.unusableKey(
                    expected: "a key for \(wanted.rawValue); this one is for \(own.rawValue)")
            }
            return own
        case (nil, .rsaPSS?): return .rsaPSS
        case (nil, .rsaV15?): return .rsaV15
        case (nil, let wanted?):
            throw SealError.unusableKey(expected: "a key for \(wanted.rawValue); this one is for RSA")
        case (nil, nil):
            throw SealError.unusableKey(
                expected: "an RSA key's algorithm to be named: rsa-pss-sha512 or rsa-v1_5-sha256")
        }
    }

    /// Whether `signature`, in RFC 9421's form for the algorithm, is a valid signature of `message`.
    package func verify(_ signature: Span<UInt8>, of message: Span<UInt8>) -> ConstantTime.Verdict {
        switch verifier {
        case .ed25519(let key): key.verify(signature, of: message)
        case .ecdsa(let key): key.verify(signature, of: message)
        case .rsa(let key): key.verify(signature, of: message)
        }
    }
}
