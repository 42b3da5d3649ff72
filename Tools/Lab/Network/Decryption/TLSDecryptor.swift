import CCrypto

/// Decrypts recorded traffic with the private key of the server's certificate. TLS 1.2 with RSA key exchange
/// can be decrypted; with forward secrecy nothing can, which is established by trying. Source: RFC 5246, RFC
/// 7627, RFC 8446.
package struct TLSDecryptor: Sendable {
    private let key: LeakedPrivateKey

    /// The key in PEM, as in the server's file.
    package init(pem: String) throws(LabError) {
        guard let key = LeakedPrivateKey(pem: pem) else { throw LabError("the leaked key is none in PEM") }
        self.key = key
    }

    /// The decrypted bytes of one connection.
    package func decrypt(_ conversation: RecordedConnection) -> Result<RecordedConnection, TLSDecryptionError>
    {
        var sessions = TLSSessionSecrets()
        return Result { () throws(TLSDecryptionError) in try decrypt(conversation, sessions: &sessions) }
    }

    /// The decrypted bytes of each connection. Resumed sessions use the secrets of the sessions that they
    /// resume.
    package func decrypt(_ recording: Recording) -> [Result<RecordedConnection, TLSDecryptionError>] {
        var sessions = TLSSessionSecrets()
        var results: [Result<RecordedConnection, TLSDecryptionError>] = []
        for conversation in recording.connections {
            do { results.append(.success(try decrypt(conversation, sessions: &sessions))) } catch {
                results.append(.failure(error))
            }
        }
        return results
    }

    private func decrypt(
        _ conversation: RecordedConnection, sessions: inout TLSSessionSecrets
    ) throws(TLSDecryptionError) -> RecordedConnection {
        let handshake = try RecordedHandshake(conversation)
        guard let suite = CipherSuite(handshake.serverHello.suite) else {
            throw .unknownSuite(handshake.serverHello.suite)
        }
        switch suite.exchange {
        case .tls13: return try TLS13Decryptor(handshake, suite: suite).decrypt(with: key)
        case .rsa, .ephemeral:
            return try TLS12Decryptor(handshake, suite: suite).decrypt(with: key, sessions: &sessions)
        }
    }
}

/// Why a key does not decrypt a connection.
package enum TLSDecryptionError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The connection contains no TLS, or its beginning is missing.
    case noHandshake(String)
    /// The decryptor does not support the suite. Says nothing about the key.
    case unknownSuite(UInt16)
    /// The keys depend on ephemeral keys that are in no recording. Everything that the leaked key yields was
    /// tried, as `tried` describes.
    case needsEphemeralKey(tried: String)
    /// The connection resumes a session whose secret is unknown.
    case resumesUnknownSession
    /// The suite can be decrypted with the server's key, but this is another server's key.
    case isOfAnotherKey

    package var description: String {
        switch self {
        case .noHandshake(let what): "no handshake to read: \(what)"
        case .unknownSuite(let number): "suite 0x\(String(number, radix: 16)) is not known"
        case .needsEphemeralKey(let tried): "needs an ephemeral key that is in no recording; \(tried)"
        case .resumesUnknownSession: "resumes a session that was not recorded, or was not readable"
        case .isOfAnotherKey: "was not encrypted to this key"
        }
    }
}

/// A private key from a file. Safe to share: not changed after `init`, and OpenSSL locks inside.
final class LeakedPrivateKey: @unchecked Sendable {
    private let pointer: OpaquePointer

    /// Nil where `pem` contains no key.
    init?(pem: String) {
        // The BIO reads from these bytes and does not keep them alive.
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

    /// Decrypts a premaster secret that was encrypted to the key (PKCS #1 v1.5); nil for keys that are not
    /// RSA. Source: RFC 5246 §7.4.7.1.
    func decrypt(_ sealed: [UInt8]) -> [UInt8]? {
        defer { ERR_clear_error() }
        guard EVP_PKEY_get_base_id(pointer) == EVP_PKEY_RSA, let context = EVP_PKEY_CTX_new(pointer, nil)
        else {
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

    /// The shared secret of the key and a peer's share on a group, numbered as in TLS; nil where the key is
    /// on another group. Source: RFC 8446 §4.2.7.
    func agree(with share: [UInt8], on group: Int) -> [UInt8]? {
        defer { ERR_clear_error() }
        guard group == self.group, let peer = EVP_PKEY_new() else { return nil }
        defer { EVP_PKEY_free(peer) }
        guard
            EVP_PKEY_copy_parameters(peer, pointer) == 1
                || EVP_PKEY_set_type(peer, EVP_PKEY_get_base_id(pointer)) == 1,
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
