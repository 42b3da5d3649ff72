#if os(Linux)
    import CCrypto
    import CountersignSodium
    import Synchronization

    /// Verification or signing with one key, prepared once: each message uses a copy of the prepared context,
    /// and one copy is kept for the next message. The prepared context never changes after `init`, so threads
    /// may share it; with a lock, the gate's event loops would wait for each other.
    final class EVPOperation: @unchecked Sendable {
        /// The padding of an RSA key. Source: RFC 9421 §3.3.1, §3.3.2.
        enum Padding {
            case none
            /// MGF1 with the same hash, 64 bytes of salt.
            case pss
            case v15
        }

        private let prepared: OpaquePointer
        /// The address of a copy that is not in use, which this owns; 0 for none. An exchange passes the
        /// ownership on, so that no two threads use the same copy.
        private let idle = Atomic<UInt>(0)
        /// Keeps the key for as long as the prepared context.
        private let key: KeyHandle

        init(_ key: KeyHandle, purpose: KeyPurpose, hash: OpaquePointer?, padding: Padding = .none)
            throws(SealError)
        {
            guard let context = EVP_PKEY_CTX_new(key.pointer, nil) else {
                throw SealError.unusableKey(expected: "a key that OpenSSL takes")
            }
            self.key = key
            prepared = context
            let begun = purpose == .verify ? EVP_PKEY_verify_init(context) : EVP_PKEY_sign_init(context)
            defer { ERR_clear_error() }
            guard begun == 1, EVPOperation.set(padding, on: context),
                EVP_PKEY_CTX_set_signature_md(context, hash) == 1
            else { throw SealError.unusableKey(expected: "a key that is made for this algorithm") }
        }

        deinit {
            EVP_PKEY_CTX_free(prepared)
            if let copy = OpaquePointer(bitPattern: idle.load(ordering: .acquiring)) {
                EVP_PKEY_CTX_free(copy)
            }
        }

        /// A copy for this thread alone; nil if OpenSSL fails.
        private func takeCopy() -> OpaquePointer? {
            OpaquePointer(bitPattern: idle.exchange(0, ordering: .acquiring)) ?? EVP_PKEY_CTX_dup(prepared)
        }

        /// Keeps the copy, which OpenSSL lets do its operation any number of times, or frees it.
        private func putBack(_ copy: OpaquePointer) {
            let address = UInt(bitPattern: copy)
            if idle.compareExchange(expected: 0, desired: address, ordering: .releasing).exchanged { return }
            EVP_PKEY_CTX_free(copy)
        }

        private static func set(_ padding: Padding, on context: OpaquePointer) -> Bool {
            switch padding {
            case .none: true
            case .pss:
                EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PSS_PADDING) == 1
                    && EVP_PKEY_CTX_set_rsa_pss_saltlen(context, 64) == 1
            case .v15: EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PADDING) == 1
            }
        }

        func verify(_ signature: Span<UInt8>, ofDigest digest: Span<UInt8>) -> ConstantTime.Verdict {
            guard let context = takeCopy() else { return .different }
            defer { putBack(context) }
            let holds = signature.withUnsafeBufferPointer { signature in
                digest.withUnsafeBufferPointer { digest in
                    EVP_PKEY_verify(
                        context, signature.baseAddress, signature.count, digest.baseAddress, digest.count)
                }
            }
            if holds == 1 { return .equal }
            // OpenSSL's error queue belongs to the thread: an error left in it would be reported by the next
            // TLS read.
            ERR_clear_error()
            return .different
        }

        /// Nil if OpenSSL fails.
        func sign(digest: Span<UInt8>) -> [UInt8]? {
            guard let context = takeCopy() else { return nil }
            defer { putBack(context) }
            var signature = [UInt8](repeating: 0, count: Int(EVP_PKEY_get_size(key.pointer)))
            var length = signature.count
            let status = digest.withUnsafeBufferPointer { digest in
                EVP_PKEY_sign(context, &signature, &length, digest.baseAddress, digest.count)
            }
            guard status == 1 else {
                ERR_clear_error()
                return nil
            }
            return Array(signature.prefix(length))
        }
    }

    /// RSA with PSS and SHA-512, or, for verification only, with PKCS #1 v1.5 and SHA-256. Source: RFC 9421
    /// §3.3.1, §3.3.2.
    struct RSA: Sendable {
        enum Form: Sendable { case pss, v15 }

        private let form: Form
        private let operation: EVPOperation

        init(_ form: Form, key: KeyHandle, purpose: KeyPurpose) throws(SealError) {
            self.form = form
            switch form {
            case .pss: operation = try EVPOperation(key, purpose: purpose, hash: EVP_sha512(), padding: .pss)
            case .v15: operation = try EVPOperation(key, purpose: purpose, hash: EVP_sha256(), padding: .v15)
            }
        }

        /// OpenSSL accepts only a signature as long as the modulus.
        func verify(_ signature: Span<UInt8>, of message: Span<UInt8>) -> ConstantTime.Verdict {
            switch form {
            case .pss:
                let digest = SHA512.digest(message)
                return operation.verify(signature, ofDigest: digest.span)
            case .v15:
                let digest = SHA256.digest(message)
                return operation.verify(signature, ofDigest: digest.span)
            }
        }

        /// Nil if OpenSSL fails, and for PKCS #1 v1.5, which is only verified.
        func sign(_ message: Span<UInt8>) -> [UInt8]? {
            guard form == .pss else { return nil }
            let digest = SHA512.digest(message)
            return operation.sign(digest: digest.span)
        }
    }

    /// The bare library call with everything prepared: the baseline against which benchmarks measure the
    /// gate's verification. Not thread-safe; it verifies one signature repeatedly.
    package final class VerificationBaseline {
        private enum Call {
            case ed25519(key: [UInt8])
            case ecdsa(context: OpaquePointer, digest: [UInt8])
        }

        private let call: Call
        private let signature: [UInt8]
        private let message: [UInt8]

        /// Nil if the key is not for ed25519 or ecdsa-p256-sha256.
        package init?(_ key: PublicKey, signature: [UInt8], of message: [UInt8]) {
            let der = key.der
            guard let evp = KeyHandle(subjectPublicKeyInfo: der.span) else { return nil }
            self.message = message
            switch key.algorithm {
            case .ed25519:
                guard let raw = evp.rawPublicKey else { return nil }
                self.signature = signature
                call = .ed25519(key: raw)
            case .ecdsaP256:
                guard let context = EVP_PKEY_CTX_new(evp.pointer, nil), EVP_PKEY_verify_init(context) == 1
                else {
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
                crypto_sign_verify_detached(signature, message, UInt64(message.count), key) == 0
                    ? .equal : .different
            case .ecdsa(let context, let digest):
                EVP_PKEY_verify(context, signature, signature.count, digest, digest.count) == 1
                    ? .equal : .different
            }
        }
    }
#endif
