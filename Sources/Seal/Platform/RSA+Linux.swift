#if os(Linux)
    import CCrypto

    /// RSA with PSS and SHA-512, or, to verify only, with PKCS #1 v1.5 and SHA-256. Source: RFC 9421 §3.3.1, §3.3.2.
    struct RSA: Sendable {
        enum Form: Sendable { case pss, v15 }

        private let form: Form
        private let operation: EVPOperation

        init(_ form: Form, _ key: KeyHandle, _ purpose: KeyPurpose) throws(KeyProblem) {
            self.form = form
            switch form {
            case .pss: operation = try EVPOperation(key, purpose, hash: EVP_sha512(), .pss)
            case .v15: operation = try EVPOperation(key, purpose, hash: EVP_sha256(), .v15)
            }
        }

        /// The library takes a signature of the modulus's length and no other.
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

        /// Nil where OpenSSL fails. PSS only: nothing new should be signed in the old form.
        func sign(_ message: Span<UInt8>) -> [UInt8]? {
            guard form == .pss else { return nil }
            let digest = SHA512.digest(message)
            return operation.sign(digest: digest.span)
        }
    }
#endif
