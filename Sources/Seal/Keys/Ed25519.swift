import CountersignSodium

/// Ed25519 by libsodium, which verifies in half of OpenSSL's time and refuses keys and points of small order.
/// Source: RFC 8032 §5.1; RFC 9421 §3.3.6.
package enum Ed25519 {
    package static let signatureCount = Int(crypto_sign_BYTES)

    /// A public key: 32 bytes.
    struct Verifier: Sendable {
        private let key: [UInt8]

        init(_ key: [UInt8]) throws(KeyProblem) {
            guard key.count == Int(crypto_sign_PUBLICKEYBYTES), sodium_init() >= 0 else {
                throw KeyProblem("an Ed25519 public key of 32 bytes")
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
        /// Seed and public half, as libsodium wants them.
        private let key: Secret
        package let publicHalf: [UInt8]

        /// Nil where the seed is not 32 bytes.
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

    /// What precedes the 32 bytes in a SubjectPublicKeyInfo. Source: RFC 8410 §4.
    static let publicPrefix: [UInt8] = [0x30, 0x2A, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x03, 0x21, 0x00]
    /// What precedes the 32 bytes of the seed in a PKCS #8 PrivateKeyInfo. Source: RFC 8410 §7.
    static let privatePrefix: [UInt8] = [
        0x30, 0x2E, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
    ]
}
