import CountersignSodium

/// Ed25519 by libsodium, which verifies in half of OpenSSL's time and rejects keys and points of small order.
/// Source: RFC 8032 §5.1; RFC 9421 §3.3.6.
package enum Ed25519 {
    package static let signatureCount = Int(crypto_sign_BYTES)

    /// A public key: 32 bytes.
    struct Verifier: Sendable {
        private let key: [UInt8]

        init(_ key: [UInt8]) throws(SealError) {
            guard key.count == Int(crypto_sign_PUBLICKEYBYTES), sodium_init() >= 0 else {
                throw SealError.unusableKey(expected: "an Ed25519 public key of 32 bytes")
            }
            self.key = key
        }

        func verify(_ signature: Span<UInt8>, of message: Span<UInt8>) -> ConstantTime.Verdict {
            guard signature.count == signatureCount else { return .different }
            let status = signature.withPointer { signature in
                message.withPointer { crypto_sign_verify_detached(signature, $0, UInt64(message.count), key) }
            }
            return status == 0 ? .equal : .different
        }
    }

    /// A private key, from its seed.
    package struct Signer: Sendable {
        /// The seed followed by the public key, as libsodium expects.
        private let key: Secret
        package let publicHalf: [UInt8]

        /// Nil if the seed is not 32 bytes.
        package init?(seed: Secret) {
            guard seed.count == Int(crypto_sign_SEEDBYTES), sodium_init() >= 0 else { return nil }
            var publicHalf = [UInt8](repeating: 0, count: Int(crypto_sign_PUBLICKEYBYTES))
            var secretHalf = [UInt8](repeating: 0, count: Int(crypto_sign_SECRETKEYBYTES))
            defer { secretHalf.withUnsafeMutableBytes { sodium_memzero($0.baseAddress, $0.count) } }
            seed.withPointer { _ = crypto_sign_seed_keypair(&publicHalf, &secretHalf, $0) }
            key = Secret(copying: secretHalf.span)
            self.publicHalf = publicHalf
        }

        package func sign(_ message: Span<UInt8>) -> [UInt8] {
            var signature = [UInt8](repeating: 0, count: signatureCount)
            key.withPointer { key in
                message.withPointer { start in
                    _ = crypto_sign_detached(&signature, nil, start, UInt64(message.count), key)
                }
            }
            return signature
        }
    }

    /// The bytes of a SubjectPublicKeyInfo before the 32 bytes of the key. Source: RFC 8410 §4.
    static let publicPrefix: [UInt8] = [
        0x30, 0x2A, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x03, 0x21, 0x00,
    ]
    /// The bytes of a PKCS #8 PrivateKeyInfo before the 32 bytes of the seed. Source: RFC 8410 §7.
    static let privatePrefix: [UInt8] = [
        0x30, 0x2E, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
    ]
}

/// An Ed25519 key of the authority, kept as its 32-byte seed. Source: RFC 8032.
package enum AnswerKey {
    package static let seedCount = Int(crypto_sign_SEEDBYTES)

    /// The public key of a seed; nil if the seed is not 32 bytes.
    package static func publicHalf(of seed: Secret) -> [UInt8]? {
        guard seed.count == seedCount, sodium_init() >= 0 else { return nil }
        var publicHalf = [UInt8](repeating: 0, count: Int(crypto_sign_PUBLICKEYBYTES))
        var secretHalf = [UInt8](repeating: 0, count: Int(crypto_sign_SECRETKEYBYTES))
        defer { secretHalf.withUnsafeMutableBytes { sodium_memzero($0.baseAddress, $0.count) } }
        seed.withPointer { seed in
            _ = crypto_sign_seed_keypair(&publicHalf, &secretHalf, seed)
        }
        return publicHalf
    }
}
