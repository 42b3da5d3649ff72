import CCrypto

/// The rules by which a listener or a client speaks TLS: 1.3, and 1.2 with forward secrecy; nothing older.
/// Source: RFC 9325 §3–4.
package final class TLSContext: @unchecked Sendable {
    /// OpenSSL counts references and locks inside; the context is not changed after `init`.
    let pointer: OpaquePointer

    /// For a listener, with its certificate chain and key as PEM files.
    package convenience init(certificate: String, key: String) throws(HTTPFault) {
        try self.init(listening: TLSContext.make(TLS_server_method()), certificate, key)
    }

    /// For the lab's imitation of an old server, and for nothing else: TLS 1.2, by preference with the premaster secret under the
    /// certificate's RSA key, so that whoever has that key one day reads what was recorded before. Source: RFC 5246 §7.4.7.1.
    package convenience init(
        preferringRSAKeyExchangeWithoutForwardSecrecy certificate: String, key: String
    ) throws(HTTPFault) {
        let context = try TLSContext.make(TLS_server_method())
        cs_ssl_ctx_set_max_proto(context, TLS1_2_VERSION)
        SSL_CTX_set_cipher_list(context, "AES128-GCM-SHA256:ECDHE+AESGCM")
        try self.init(listening: context, certificate, key)
    }

    /// Which authorities may vouch for a server.
    package enum TrustAnchors: Sendable, Equatable {
        /// Those of the system, or of `SSL_CERT_FILE` and `SSL_CERT_DIR`.
        case system
        /// The certificates in a PEM file, and no others.
        case file(String)
    }

    /// For a client that checks the server's chain and host name. `identity` is a certificate chain and its key as PEM
    /// files, shown to servers that ask for one.
    package init(trusting anchors: TrustAnchors, identity: (certificate: String, key: String)? = nil) throws(HTTPFault)
    {
        pointer = try TLSContext.make(TLS_client_method())
        SSL_CTX_set_verify(pointer, SSL_VERIFY_PEER, nil)
        switch anchors {
        case .system: SSL_CTX_set_default_verify_paths(pointer)
        case .file(let path):
            guard SSL_CTX_load_verify_file(pointer, path) == 1 else {
                throw HTTPFault("\(path): not a PEM file of authorities' certificates (\(TLSContext.lastError()))")
            }
        }
        if let identity { try use(certificate: identity.certificate, key: identity.key) }
    }

    private init(listening context: OpaquePointer, _ certificate: String, _ key: String) throws(HTTPFault) {
        pointer = context
        SSL_CTX_set_options(pointer, TLSContext.serverOptions)
        cs_ssl_ctx_limit_rekeying(pointer)
        try use(certificate: certificate, key: key)
    }

    private func use(certificate: String, key: String) throws(HTTPFault) {
        guard SSL_CTX_use_certificate_chain_file(pointer, certificate) == 1 else {
            throw HTTPFault("\(certificate): not a PEM certificate chain (\(TLSContext.lastError()))")
        }
        guard SSL_CTX_use_PrivateKey_file(pointer, key, SSL_FILETYPE_PEM) == 1 else {
            if ERR_GET_REASON(ERR_peek_error()) == X509_R_KEY_VALUES_MISMATCH {
                ERR_clear_error()
                throw HTTPFault("\(key): is not the key of the certificate in \(certificate)")
            }
            throw HTTPFault("\(key): not a PEM private key (\(TLSContext.lastError()))")
        }
        guard SSL_CTX_check_private_key(pointer) == 1 else {
            throw HTTPFault("\(key): is not the key of the certificate in \(certificate)")
        }
    }

    deinit { SSL_CTX_free(pointer) }

    private static let serverOptions: UInt64 =
        UInt64(1) << 30  // SSL_OP_NO_RENEGOTIATION: a client cannot make us do handshakes for nothing
        | UInt64(1) << 22  // SSL_OP_CIPHER_SERVER_PREFERENCE
        | UInt64(1) << 17  // SSL_OP_NO_COMPRESSION

    private static func make(_ method: OpaquePointer?) throws(HTTPFault) -> OpaquePointer {
        guard let context = SSL_CTX_new(method) else { throw HTTPFault("TLS: \(lastError())") }
        cs_ssl_ctx_set_min_proto(context, TLS1_2_VERSION)
        SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20:!aNULL")
        cs_ssl_ctx_set_groups(context, "X25519:P-256:P-384")
        // A write may be taken in part and tried again from another place; buffers go while a connection idles; one
        // read call fetches a whole record.
        cs_ssl_ctx_set_mode(
            context, Int(SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS)
        )
        cs_ssl_ctx_set_read_ahead(context, 1)
        return context
    }

    static func lastError() -> String {
        var text = [CChar](repeating: 0, count: 256)
        ERR_error_string_n(ERR_get_error(), &text, text.count)
        ERR_clear_error()
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
