import CCrypto

/// A private key as it leaks: a file. Safe to share: not changed after `init`, and OpenSSL locks inside.
final class PrivateKey: @unchecked Sendable {
    private let pointer: OpaquePointer

    /// Nil where it is none.
    init?(pem: String) {
        // The source reads from these bytes for as long as it lives, and does not keep them alive.
        let found = Array(pem.utf8).withUnsafeBytes { bytes -> OpaquePointer? in
            guard let source = BIO_new_mem_buf(bytes.baseAddress, Int32(bytes.count)) else { return nil }
            defer { BIO_free(source) }
            return PEM_read_bio_PrivateKey(source, nil, nil, nil)
        }
        guard let key = found else {
            ERR_clear_error()
            return nil
        }
        pointer = key
    }

    deinit { EVP_PKEY_free(pointer) }

    /// `RSA`, `EC`…
    var kind: String { EVP_PKEY_get0_type_name(pointer).map { String(cString: $0) } ?? "unknown" }

    /// What was encrypted to it as RSA key exchange does it (PKCS #1 v1.5); nil for keys that are not RSA. Source: RFC 5246 §7.4.7.1.
    func decrypt(_ sealed: [UInt8]) -> [UInt8]? {
        defer { ERR_clear_error() }
        guard EVP_PKEY_get_base_id(pointer) == EVP_PKEY_RSA, let context = EVP_PKEY_CTX_new(pointer, nil) else {
            return nil
        }
        defer { EVP_PKEY_CTX_free(context) }
        var opened = [UInt8](repeating: 0, count: Int(EVP_PKEY_get_size(pointer)))
        var count = opened.count
        guard EVP_PKEY_decrypt_init(context) == 1,
            EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PADDING) == 1,
            EVP_PKEY_decrypt(context, &opened, &count, sealed, sealed.count) == 1
        else { return nil }
        return Array(opened.prefix(count))
    }

    /// What Diffie and Hellman make of it and somebody's share on that group, as TLS numbers groups; nil where the key is on another one.
    /// Source: RFC 8446 §4.2.7.
    func agree(with share: [UInt8], on group: Int) -> [UInt8]? {
        defer { ERR_clear_error() }
        guard group == self.group, let peer = EVP_PKEY_new() else { return nil }
        defer { EVP_PKEY_free(peer) }
        guard
            EVP_PKEY_copy_parameters(peer, pointer) == 1 || EVP_PKEY_set_type(peer, EVP_PKEY_get_base_id(pointer)) == 1,
            EVP_PKEY_set1_encoded_public_key(peer, share, share.count) == 1,
            let context = EVP_PKEY_CTX_new(pointer, nil)
        else { return nil }
        defer { EVP_PKEY_CTX_free(context) }
        var secret = [UInt8](repeating: 0, count: 128)
        var count = secret.count
        guard EVP_PKEY_derive_init(context) == 1, EVP_PKEY_derive_set_peer(context, peer) == 1,
            EVP_PKEY_derive(context, &secret, &count) == 1
        else { return nil }
        return Array(secret.prefix(count))
    }

    private var group: Int? {
        if EVP_PKEY_get_base_id(pointer) == EVP_PKEY_X25519 { return 0x001D }
        var name = [CChar](repeating: 0, count: 32)
        guard EVP_PKEY_get_base_id(pointer) == EVP_PKEY_EC,
            EVP_PKEY_get_group_name(pointer, &name, name.count, nil) == 1
        else { return nil }
        return ["prime256v1": 0x0017, "secp384r1": 0x0018, "secp521r1": 0x0019][
            String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)]
    }
}
