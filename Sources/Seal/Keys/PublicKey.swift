/// A key that verifies and cannot sign. Public, so it may be shown; what it is made for is fixed with it.
package final class PublicKey: Sendable {
    private enum Verifier: Sendable {
        case ed25519(Ed25519.Verifier)
        case ecdsa(ECDSA)
        case rsa(RSA)
    }

    package let algorithm: KeyAlgorithm
    /// As SubjectPublicKeyInfo, DER. Source: RFC 5280 §4.1.
    package let der: [UInt8]
    private let verifier: Verifier

    /// `algorithm` is needed for RSA, which has two; for the others it may be nil, and must fit where it is not.
    package convenience init(der: Span<UInt8>, algorithm: KeyAlgorithm? = nil) throws(KeyProblem) {
        guard let key = KeyHandle(subjectPublicKeyInfo: der) else {
            throw KeyProblem("a public key as SubjectPublicKeyInfo")
        }
        try self.init(key, algorithm)
    }

    /// From a PEM file: a public key, or a private one, whose public half is taken.
    package convenience init(pem: Span<UInt8>, algorithm: KeyAlgorithm? = nil) throws(KeyProblem) {
        let (kind, der) = try PEM.read(pem)
        switch kind {
        case .publicKey:
            guard let key = der.withExposedBytes({ KeyHandle(subjectPublicKeyInfo: $0) }) else {
                throw KeyProblem("a public key as SubjectPublicKeyInfo")
            }
            try self.init(key, algorithm)
        case .privateKey:
            guard let key = KeyHandle(privateKeyInfo: der) else { throw KeyProblem("a private key as PKCS #8") }
            try self.init(key, algorithm)
        }
    }

    /// An Ed25519 key as its 32 bytes.
    package convenience init(ed25519 bytes: [UInt8]) throws(KeyProblem) {
        guard bytes.count == 32 else { throw KeyProblem("an Ed25519 public key of 32 bytes") }
        try self.init(der: (Ed25519.publicPrefix + bytes).span, algorithm: .ed25519)
    }

    /// A key on P-256 for ecdsa-p256-sha256; throws where the point is not on the curve.
    init(_ point: P256Point) throws(KeyProblem) {
        guard let key = KeyHandle(point) else { throw KeyProblem("a point on P-256") }
        algorithm = .ecdsaP256
        der = point.subjectPublicKeyInfo
        verifier = .ecdsa(try ECDSA(.p256, key, .verify))
    }

    init(_ key: KeyHandle, _ wanted: KeyAlgorithm?) throws(KeyProblem) {
        let algorithm = try PublicKey.algorithm(of: key, wanted)
        try key.check()
        self.algorithm = algorithm
        der = key.subjectPublicKeyInfo
        switch algorithm {
        case .ed25519: verifier = .ed25519(try Ed25519.Verifier(key.rawPublicKey ?? []))
        case .ecdsaP256: verifier = .ecdsa(try ECDSA(.p256, key, .verify))
        case .ecdsaP384: verifier = .ecdsa(try ECDSA(.p384, key, .verify))
        case .rsaPSS: verifier = .rsa(try RSA(.pss, key, .verify))
        case .rsaV15: verifier = .rsa(try RSA(.v15, key, .verify))
        case .hmacSHA256: throw KeyProblem("an algorithm with public keys; hmac-sha256 has none")
        }
    }

    /// What a key is to be used for, once it and whoever brings it agree.
    static func algorithm(of key: KeyHandle, _ wanted: KeyAlgorithm?) throws(KeyProblem) -> KeyAlgorithm {
        switch (try key.algorithm(), wanted) {
        case (let own?, nil): return own
        case (let own?, let wanted?):
            guard own == wanted else {
                throw KeyProblem("a key for \(wanted.rawValue); this one is for \(own.rawValue)")
            }
            return own
        case (nil, .rsaPSS?): return .rsaPSS
        case (nil, .rsaV15?): return .rsaV15
        case (nil, let wanted?): throw KeyProblem("a key for \(wanted.rawValue); this one is for RSA")
        case (nil, nil): throw KeyProblem("an RSA key's algorithm to be named: rsa-pss-sha512 or rsa-v1_5-sha256")
        }
    }

    /// Whether `signature`, in RFC 9421's form for the algorithm, is one of `message`.
    package func verify(_ signature: Span<UInt8>, of message: Span<UInt8>) -> ConstantTime.Verdict {
        switch verifier {
        case .ed25519(let key): key.verify(signature, of: message)
        case .ecdsa(let key): key.verify(signature, of: message)
        case .rsa(let key): key.verify(signature, of: message)
        }
    }
}
