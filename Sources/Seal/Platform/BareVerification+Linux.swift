#if os(Linux)
    import CCrypto
    import CountersignSodium

    /// The library's call alone, with everything about it prepared: what a verdict is measured against. Not thread-safe, and
    /// for nothing else: it verifies one signature, again and again.
    package final class BareVerification {
        private enum Call {
            case ed25519(key: [UInt8])
            case ecdsa(context: OpaquePointer, digest: [UInt8])
        }

        private let call: Call
        private let signature: [UInt8]
        private let message: [UInt8]

        /// Nil where the key is for another algorithm than ed25519 and ecdsa-p256-sha256.
        package init?(_ key: PublicKey, _ signature: [UInt8], of message: [UInt8]) {
            let der = key.der
            guard let evp = KeyHandle(subjectPublicKeyInfo: der.span) else { return nil }
            self.message = message
            switch key.algorithm {
            case .ed25519:
                guard let raw = evp.rawPublicKey else { return nil }
                self.signature = signature
                call = .ed25519(key: raw)
            case .ecdsaP256:
                guard let context = EVP_PKEY_CTX_new(evp.pointer, nil), EVP_PKEY_verify_init(context) == 1 else {
                    return nil
                }
                let digest = SHA256.digest(message.span)
                let encoded = ECDSA.der(signature.span, half: 32)
                self.signature = encoded.array
                call = .ecdsa(context: context, digest: (0..<32).map { digest[$0] })
            default: return nil
            }
        }

        deinit { if case .ecdsa(let context, _) = call { EVP_PKEY_CTX_free(context) } }

        package func run() -> ConstantTime.Verdict {
            switch call {
            case .ed25519(let key):
                crypto_sign_verify_detached(signature, message, UInt64(message.count), key) == 0 ? .equal : .different
            case .ecdsa(let context, let digest):
                EVP_PKEY_verify(context, signature, signature.count, digest, digest.count) == 1 ? .equal : .different
            }
        }
    }
#endif
