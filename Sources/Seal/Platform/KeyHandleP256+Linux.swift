#if os(Linux)
    import CCrypto

    /// Keys on P-256 without OpenSSL's decoders and encoders. Those ask every provider about every format, which for the 91 bytes
    /// of such a key takes five times as long as a verification; a copy of a key's parameters with another point in it takes a
    /// tenth of one.
    extension KeyHandle {
        /// A key whose curve others are given. Only read from once it is made. Nil where OpenSSL makes none.
        private static let pattern: KeyHandle? = cs_ec_p256_generate().map { KeyHandle($0) }

        /// A new one; nil where OpenSSL makes none.
        static func randomP256() -> KeyHandle? {
            guard let pattern, let context = EVP_PKEY_CTX_new(pattern.pointer, nil) else { return nil }
            defer { EVP_PKEY_CTX_free(context) }
            defer { ERR_clear_error() }
            var key: OpaquePointer?
            guard EVP_PKEY_keygen_init(context) == 1, EVP_PKEY_keygen(context, &key) == 1, let key else { return nil }
            return KeyHandle(key)
        }

        /// The public half that is at this point; nil where the point is not on the curve. That is all there is to check: infinity has
        /// no such bytes, coordinates beyond the field are refused, and the cofactor is 1. Source: NIST SP 800-56A §5.6.2.3.4.
        convenience init?(_ point: P256Point) {
            guard let pattern = KeyHandle.pattern, let key = EVP_PKEY_new() else { return nil }
            defer { ERR_clear_error() }
            guard EVP_PKEY_copy_parameters(key, pattern.pointer) == 1,
                EVP_PKEY_set1_encoded_public_key(key, point.bytes, point.bytes.count) == 1
            else {
                EVP_PKEY_free(key)
                return nil
            }
            self.init(key)
        }

        /// Where its public half is; nil for keys that are not on P-256.
        var p256Point: P256Point? {
            guard (try? algorithm()) == .ecdsaP256 else { return nil }
            var start: UnsafeMutablePointer<UInt8>?
            let count = EVP_PKEY_get1_encoded_public_key(pointer, &start)
            defer { cs_openssl_free(start) }
            guard let start, count == P256Point.count else { return nil }
            return P256Point(Array(UnsafeBufferPointer(start: start, count: count)))
        }

        /// The x coordinate of the product with another key's point, 32 bytes. Source: NIST SP 800-56A §5.7.1.2.
        func sharedSecret(with peer: KeyHandle) throws(KeyProblem) -> Secret {
            defer { ERR_clear_error() }
            guard let context = EVP_PKEY_CTX_new(pointer, nil) else { throw KeyProblem("a key that OpenSSL takes") }
            defer { EVP_PKEY_CTX_free(context) }
            // Not validated once more, by a multiplication with the order: it is on the curve, whose cofactor is 1.
            guard EVP_PKEY_derive_init(context) == 1, EVP_PKEY_derive_set_peer_ex(context, peer.pointer, 0) == 1 else {
                throw KeyProblem("a point on P-256")
            }
            var bytes = [UInt8](repeating: 0, count: 32)
            defer { bytes.withUnsafeMutableBytes { OPENSSL_cleanse($0.baseAddress, $0.count) } }
            var length = bytes.count
            guard EVP_PKEY_derive(context, &bytes, &length) == 1, length == 32 else {
                throw KeyProblem("a point on P-256")
            }
            return Secret(copying: bytes.span)
        }
    }
#endif
