#if os(Linux)
    import CCrypto

    /// Verifying or signing with one key, set up once: each message works on a copy of what was prepared. The prepared
    /// context is never changed after `init`, which is what makes sharing it between threads sound; a lock would make the
    /// gate's loops wait for each other.
    final class EVPOperation: @unchecked Sendable {
        /// How an RSA key pads. Source: RFC 9421 §3.3.1, §3.3.2.
        enum Padding {
            case none
            /// MGF1 with the same hash, 64 bytes of salt.
            case pss
            case v15
        }

        private let prepared: OpaquePointer
        /// OpenSSL lets go of the key with its contexts; this keeps ours as long.
        private let key: KeyHandle

        init(_ key: KeyHandle, _ purpose: KeyPurpose, hash: OpaquePointer?, _ padding: Padding = .none)
            throws(KeyProblem)
        {
            guard let context = EVP_PKEY_CTX_new(key.pointer, nil) else { throw KeyProblem("a key that OpenSSL takes") }
            self.key = key
            prepared = context
            let begun = purpose == .verify ? EVP_PKEY_verify_init(context) : EVP_PKEY_sign_init(context)
            defer { ERR_clear_error() }
            guard begun == 1, EVPOperation.set(padding, on: context),
                EVP_PKEY_CTX_set_signature_md(context, hash) == 1
            else { throw KeyProblem("a key that is made for this algorithm") }
        }

        deinit { EVP_PKEY_CTX_free(prepared) }

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
            guard let context = EVP_PKEY_CTX_dup(prepared) else { return .different }
            defer { EVP_PKEY_CTX_free(context) }
            let holds = signature.withUnsafeBufferPointer { signature in
                digest.withUnsafeBufferPointer { digest in
                    EVP_PKEY_verify(context, signature.baseAddress, signature.count, digest.baseAddress, digest.count)
                }
            }
            if holds == 1 { return .equal }
            // The queue of errors is the thread's: what stays in it would be taken for an error of the next TLS read.
            ERR_clear_error()
            return .different
        }

        /// Nil where OpenSSL fails.
        func sign(digest: Span<UInt8>) -> [UInt8]? {
            guard let context = EVP_PKEY_CTX_dup(prepared) else { return nil }
            defer { EVP_PKEY_CTX_free(context) }
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
#endif
