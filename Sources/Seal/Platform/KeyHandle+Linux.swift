#if os(Linux)
    import CCrypto

    /// A key as OpenSSL holds it, whose bytes it wipes when the last holder lets go. It is not changed after `init`, and
    /// OpenSSL counts its holders atomically, which is what makes sharing it between threads sound.
    final class KeyHandle: @unchecked Sendable {
        let pointer: OpaquePointer

        /// Takes it over.
        init(_ pointer: OpaquePointer) { self.pointer = pointer }

        deinit { EVP_PKEY_free(pointer) }

        /// From a SubjectPublicKeyInfo that takes all of `der`; nil where it is none.
        convenience init?(subjectPublicKeyInfo der: Span<UInt8>) {
            let key = der.withUnsafeBytes { bytes -> OpaquePointer? in
                var cursor = bytes.bindMemory(to: UInt8.self).baseAddress
                guard let end = cursor.map({ $0 + bytes.count }), let key = d2i_PUBKEY(nil, &cursor, bytes.count) else {
                    return nil
                }
                guard cursor == end else {
                    EVP_PKEY_free(key)
                    return nil
                }
                return key
            }
            // The queue of errors is the thread's: what stays in it would be taken for an error of the next TLS read.
            ERR_clear_error()
            guard let key else { return nil }
            self.init(key)
        }

        /// From a PKCS #8 PrivateKeyInfo that takes all of `der`; nil where it is none.
        convenience init?(privateKeyInfo der: Secret) {
            let key = der.withPointer { start -> OpaquePointer? in
                var cursor: UnsafePointer<UInt8>? = start
                guard let info = d2i_PKCS8_PRIV_KEY_INFO(nil, &cursor, der.count) else { return nil }
                defer { PKCS8_PRIV_KEY_INFO_free(info) }
                return cursor == start + der.count ? EVP_PKCS82PKEY(info) : nil
            }
            ERR_clear_error()
            guard let key else { return nil }
            self.init(key)
        }

        /// What the key is good for, where it is a kind that we take; nil for RSA, which two algorithms use.
        func algorithm() throws(KeyProblem) -> KeyAlgorithm? {
            switch EVP_PKEY_get_base_id(pointer) {
            case EVP_PKEY_ED25519: return .ed25519
            case EVP_PKEY_EC:
                switch groupName {
                case "prime256v1": return .ecdsaP256
                case "secp384r1": return .ecdsaP384
                default: throw KeyProblem("an elliptic curve of P-256 or P-384")
                }
            case EVP_PKEY_RSA: return nil
            // A key whose own identifier says PSS is for nothing else. Source: RFC 4055 §1.2.
            case EVP_PKEY_RSA_PSS: return .rsaPSS
            default: throw KeyProblem("a key for Ed25519, P-256, P-384 or RSA")
            }
        }

        /// Whether its numbers can be a key at all: a point on its curve, an odd modulus and exponent. Source: NIST SP 800-56B
        /// §6.4.2, SP 800-56A §5.6.2.3.4.
        ///
        /// Of curves the quick check is whole: the cofactor of P-256 and P-384 is 1, so that each point on them but infinity has the
        /// group's order. To multiply by the order as well would cost as much as a signature.
        func check() throws(KeyProblem) {
            let base = EVP_PKEY_get_base_id(pointer)
            if base == EVP_PKEY_RSA || base == EVP_PKEY_RSA_PSS, !(2048...4096).contains(EVP_PKEY_get_bits(pointer)) {
                throw KeyProblem("an RSA key of 2048 to 4096 bits")
            }
            guard let context = EVP_PKEY_CTX_new(pointer, nil) else { throw KeyProblem("a key that OpenSSL takes") }
            defer { EVP_PKEY_CTX_free(context) }
            defer { ERR_clear_error() }
            let verdict =
                base == EVP_PKEY_EC ? EVP_PKEY_public_check_quick(context) : EVP_PKEY_public_check(context)
            guard verdict == 1 else { throw KeyProblem("a public key that is one") }
        }

        private var groupName: String {
            var name = [CChar](repeating: 0, count: 32)
            var length = 0
            guard EVP_PKEY_get_group_name(pointer, &name, name.count, &length) == 1 else { return "" }
            return String(decoding: name.prefix(length).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }

        /// The public half as SubjectPublicKeyInfo; empty where OpenSSL cannot write it.
        var subjectPublicKeyInfo: [UInt8] {
            var start: UnsafeMutablePointer<UInt8>?
            let length = i2d_PUBKEY(pointer, &start)
            defer { cs_openssl_free(start) }
            guard length > 0, let start else { return [] }
            return Array(UnsafeBufferPointer(start: start, count: Int(length)))
        }

        /// The private half as PKCS #8 PrivateKeyInfo; nil where OpenSSL cannot write it.
        var privateKeyInfo: Secret? {
            guard let info = EVP_PKEY2PKCS8(pointer) else { return nil }
            defer { PKCS8_PRIV_KEY_INFO_free(info) }
            var start: UnsafeMutablePointer<UInt8>?
            let length = i2d_PKCS8_PRIV_KEY_INFO(info, &start)
            guard length > 0, let start else { return nil }
            defer { cs_openssl_clear_free(start, Int(length)) }
            return Secret(copying: Span(_unsafeElements: UnsafeBufferPointer(start: start, count: Int(length))))
        }

        /// 32 bytes: an Ed25519 key's public half.
        var rawPublicKey: [UInt8]? {
            var bytes = [UInt8](repeating: 0, count: 32)
            var length = bytes.count
            guard EVP_PKEY_get_raw_public_key(pointer, &bytes, &length) == 1, length == 32 else { return nil }
            return bytes
        }

        /// 32 bytes: an Ed25519 key's seed.
        var rawPrivateKey: Secret? {
            var bytes = [UInt8](repeating: 0, count: 32)
            defer { bytes.withUnsafeMutableBytes { OPENSSL_cleanse($0.baseAddress, $0.count) } }
            var length = bytes.count
            guard EVP_PKEY_get_raw_private_key(pointer, &bytes, &length) == 1, length == 32 else { return nil }
            return Secret(copying: bytes.span)
        }
    }
#endif
