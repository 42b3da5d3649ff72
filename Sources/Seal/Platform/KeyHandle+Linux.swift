#if os(Linux)
    import CCrypto

    /// A key in OpenSSL, which wipes its bytes when the last reference is released. The key does not change
    /// after `init`, and OpenSSL counts references atomically, so threads may share it.
    final class KeyHandle: @unchecked Sendable {
        let pointer: OpaquePointer

        /// Takes ownership of the key.
        init(_ pointer: OpaquePointer) { self.pointer = pointer }

        deinit { EVP_PKEY_free(pointer) }

        /// Parses a SubjectPublicKeyInfo that is all of `der`; nil if it is invalid.
        convenience init?(subjectPublicKeyInfo der: Span<UInt8>) {
            let key = der.withUnsafeBytes { bytes -> OpaquePointer? in
                var cursor = bytes.bindMemory(to: UInt8.self).baseAddress
                guard let end = cursor.map({ $0 + bytes.count }),
                    let key = d2i_PUBKEY(nil, &cursor, bytes.count)
                else {
                    return nil
                }
                guard cursor == end else {
                    EVP_PKEY_free(key)
                    return nil
                }
                return key
            }
            // OpenSSL's error queue belongs to the thread: an error left in it would be reported by the next
            // TLS read.
            ERR_clear_error()
            guard let key else { return nil }
            self.init(key)
        }

        /// Parses a PKCS #8 PrivateKeyInfo that is all of `der`; nil if it is invalid.
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

        /// The key's algorithm, if its kind is supported; nil for RSA, which has two algorithms.
        func algorithm() throws(SealError) -> KeyAlgorithm? {
            switch EVP_PKEY_get_base_id(pointer) {
            case EVP_PKEY_ED25519: return .ed25519
            case EVP_PKEY_EC:
                switch groupName {
                case "prime256v1": return .ecdsaP256
                case "secp384r1": return .ecdsaP384
                default: throw SealError.unusableKey(expected: "an elliptic curve of P-256 or P-384")
                }
            case EVP_PKEY_RSA: return nil
            // A key whose own identifier is PSS may not be used otherwise. Source: RFC 4055 §1.2.
            case EVP_PKEY_RSA_PSS: return .rsaPSS
            default: throw SealError.unusableKey(expected: "a key for Ed25519, P-256, P-384 or RSA")
            }
        }

        /// Checks that the numbers are a valid key: a point on its curve, an odd modulus and exponent.
        /// Source: NIST SP 800-56B §6.4.2, SP 800-56A §5.6.2.3.4.
        ///
        /// For curves, the quick check is complete: the cofactor of P-256 and P-384 is 1, so every point on
        /// them except infinity has the group's order. Multiplying by the order as well would cost as much as
        /// a signature.
        func check() throws(SealError) {
            let base = EVP_PKEY_get_base_id(pointer)
            if base == EVP_PKEY_RSA || base == EVP_PKEY_RSA_PSS,
                !(2048...4096).contains(EVP_PKEY_get_bits(pointer))
            {
                throw SealError.unusableKey(expected: "an RSA key of 2048 to 4096 bits")
            }
            guard let context = EVP_PKEY_CTX_new(pointer, nil) else {
                throw SealError.unusableKey(expected: "a key that OpenSSL takes")
            }
            defer { EVP_PKEY_CTX_free(context) }
            defer { ERR_clear_error() }
            let verdict =
                base == EVP_PKEY_EC ? EVP_PKEY_public_check_quick(context) : EVP_PKEY_public_check(context)
            guard verdict == 1 else { throw SealError.unusableKey(expected: "a public key that is one") }
        }

        private var groupName: String {
            var name = [CChar](repeating: 0, count: 32)
            var length = 0
            guard EVP_PKEY_get_group_name(pointer, &name, name.count, &length) == 1 else { return "" }
            return String(decoding: name.prefix(length).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }

        /// The public key as SubjectPublicKeyInfo; empty if OpenSSL cannot encode it.
        var subjectPublicKeyInfo: [UInt8] {
            var start: UnsafeMutablePointer<UInt8>?
            let length = i2d_PUBKEY(pointer, &start)
            defer { cs_openssl_free(start) }
            guard length > 0, let start else { return [] }
            return Array(UnsafeBufferPointer(start: start, count: Int(length)))
        }

        /// The private key as PKCS #8 PrivateKeyInfo; nil if OpenSSL cannot encode it.
        var privateKeyInfo: Secret? {
            guard let info = EVP_PKEY2PKCS8(pointer) else { return nil }
            defer { PKCS8_PRIV_KEY_INFO_free(info) }
            var start: UnsafeMutablePointer<UInt8>?
            let length = i2d_PKCS8_PRIV_KEY_INFO(info, &start)
            guard length > 0, let start else { return nil }
            defer { cs_openssl_clear_free(start, Int(length)) }
            return Secret(
                copying: Span(_unsafeElements: UnsafeBufferPointer(start: start, count: Int(length))))
        }

        /// An Ed25519 public key, 32 bytes.
        var rawPublicKey: [UInt8]? {
            var bytes = [UInt8](repeating: 0, count: 32)
            var length = bytes.count
            guard EVP_PKEY_get_raw_public_key(pointer, &bytes, &length) == 1, length == 32 else { return nil }
            return bytes
        }

        /// An Ed25519 key's seed, 32 bytes.
        var rawPrivateKey: Secret? {
            var bytes = [UInt8](repeating: 0, count: 32)
            defer { bytes.withUnsafeMutableBytes { OPENSSL_cleanse($0.baseAddress, $0.count) } }
            var length = bytes.count
            guard EVP_PKEY_get_raw_private_key(pointer, &bytes, &length) == 1, length == 32 else {
                return nil
            }
            return Secret(copying: bytes.span)
        }
    }

    /// P-256 keys without OpenSSL's decoders and encoders. Those query every provider for every format, which
    /// takes five times as long as a verification for the 91 bytes of such a key. Copying a key's parameters
    /// and setting another point takes a tenth of a verification.
    extension KeyHandle {
        /// A key whose curve parameters are copied to new keys. It is only read after it is made. Nil if
        /// OpenSSL cannot make it.
        private static let pattern: KeyHandle? = cs_ec_p256_generate().map { KeyHandle($0) }

        /// Generates a key; nil if OpenSSL fails.
        static func randomP256() -> KeyHandle? {
            guard let pattern, let context = EVP_PKEY_CTX_new(pattern.pointer, nil) else { return nil }
            defer { EVP_PKEY_CTX_free(context) }
            defer { ERR_clear_error() }
            var key: OpaquePointer?
            guard EVP_PKEY_keygen_init(context) == 1, EVP_PKEY_keygen(context, &key) == 1, let key else {
                return nil
            }
            return KeyHandle(key)
        }

        /// The public key at this point; nil if the point is not on the curve. No other check is needed:
        /// infinity has no such encoding, OpenSSL refuses coordinates outside the field, and the cofactor is
        /// 1. Source: NIST SP 800-56A §5.6.2.3.4.
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

        /// The point of the public key; nil for keys that are not on P-256.
        var p256Point: P256Point? {
            guard (try? algorithm()) == .ecdsaP256 else { return nil }
            var start: UnsafeMutablePointer<UInt8>?
            let count = EVP_PKEY_get1_encoded_public_key(pointer, &start)
            defer { cs_openssl_free(start) }
            guard let start, count == P256Point.count else { return nil }
            return P256Point(Array(UnsafeBufferPointer(start: start, count: count)))
        }

        /// The x coordinate of the product with another key's point, 32 bytes. Source: NIST SP 800-56A
        /// §5.7.1.2.
        func sharedSecret(with peer: KeyHandle) throws(SealError) -> Secret {
            defer { ERR_clear_error() }
            guard let context = EVP_PKEY_CTX_new(pointer, nil) else {
                throw SealError.unusableKey(expected: "a key that OpenSSL takes")
            }
            defer { EVP_PKEY_CTX_free(context) }
            // The peer is not validated again by a multiplication with the order: it is on the curve, whose
            // cofactor is 1.
            guard EVP_PKEY_derive_init(context) == 1,
                EVP_PKEY_derive_set_peer_ex(context, peer.pointer, 0) == 1
            else {
                throw SealError.unusableKey(expected: "a point on P-256")
            }
            var bytes = [UInt8](repeating: 0, count: 32)
            defer { bytes.withUnsafeMutableBytes { OPENSSL_cleanse($0.baseAddress, $0.count) } }
            var length = bytes.count
            guard EVP_PKEY_derive(context, &bytes, &length) == 1, length == 32 else {
                throw SealError.unusableKey(expected: "a point on P-256")
            }
            return Secret(copying: bytes.span)
        }
    }
#endif
