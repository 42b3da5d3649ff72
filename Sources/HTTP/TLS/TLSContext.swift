import CCrypto
import Glibc

/// The TLS configuration of a listener or a client: TLS 1.3, and TLS 1.2 with forward secrecy; no older
/// version. Source: RFC 9325 §3–4.
///
/// Safe to share: `pointer` and its context's settings do not change after `init`, and OpenSSL locks state
/// that changes with use, such as the session cache and the reference count.
package final class TLSContext: @unchecked Sendable {
    let pointer: OpaquePointer

    /// Makes a context for a listener, with its certificate chain and key from PEM files.
    package convenience init(certificate: String, key: String) throws(HTTPError) {
        try self.init(listening: TLSContext.make(TLS_server_method()), certificate: certificate, key: key)
    }

    /// Makes a context for the lab's imitation of an old server, and for no other use: TLS 1.2, preferably
    /// with the premaster secret encrypted to the certificate's RSA key, so that a later holder of that key
    /// can decrypt recorded connections. Source: RFC 5246 §7.4.7.1.
    package convenience init(
        preferringRSAKeyExchangeWithoutForwardSecrecy certificate: String, key: String
    ) throws(HTTPError) {
        let context = try TLSContext.make(TLS_server_method())
        cs_ssl_ctx_set_max_proto(context, TLS1_2_VERSION)
        SSL_CTX_set_cipher_list(context, "AES128-GCM-SHA256:ECDHE+AESGCM")
        try self.init(listening: context, certificate: certificate, key: key)
    }

    /// The certificate authorities that a client accepts for a server.
    package enum TrustAnchors: Sendable, Equatable {
        /// Those of the system, or of `SSL_CERT_FILE` and `SSL_CERT_DIR`.
        case system
        /// The certificates in a PEM file, and no others.
        case file(String)
    }

    /// Makes a context for a client that verifies the server's chain. `identity` is a certificate chain and
    /// its key as PEM files, presented to servers that request a client certificate.
    package init(trusting anchors: TrustAnchors, identity: (certificate: String, key: String)? = nil)
        throws(HTTPError)
    {
        pointer = try TLSContext.make(TLS_client_method())
        SSL_CTX_set_verify(pointer, SSL_VERIFY_PEER, nil)
        switch anchors {
        case .system: SSL_CTX_set_default_verify_paths(pointer)
        case .file(let path):
            guard SSL_CTX_load_verify_file(pointer, path) == 1 else {
                throw HTTPError(
                    "\(path): not a PEM file of authorities' certificates (\(TLSContext.lastError()))")
            }
        }
        if let identity { try use(certificate: identity.certificate, key: identity.key) }
    }

    private init(listening context: OpaquePointer, certificate: String, key: String) throws(HTTPError) {
        pointer = context
        SSL_CTX_set_options(pointer, TLSContext.serverOptions)
        cs_ssl_ctx_limit_rekeying(pointer)
        try use(certificate: certificate, key: key)
    }

    private func use(certificate: String, key: String) throws(HTTPError) {
        guard SSL_CTX_use_certificate_chain_file(pointer, certificate) == 1 else {
            throw HTTPError("\(certificate): not a PEM certificate chain (\(TLSContext.lastError()))")
        }
        guard SSL_CTX_use_PrivateKey_file(pointer, key, SSL_FILETYPE_PEM) == 1 else {
            if ERR_GET_REASON(ERR_peek_error()) == X509_R_KEY_VALUES_MISMATCH {
                ERR_clear_error()
                throw HTTPError("\(key): is not the key of the certificate in \(certificate)")
            }
            throw HTTPError("\(key): not a PEM private key (\(TLSContext.lastError()))")
        }
        guard SSL_CTX_check_private_key(pointer) == 1 else {
            throw HTTPError("\(key): is not the key of the certificate in \(certificate)")
        }
    }

    /// When the context's certificate expires, in whole Unix seconds; nil for a context without one.
    package var expiry: Int64? {
        guard let certificate = SSL_CTX_get0_certificate(pointer) else { return nil }
        var parts = tm()
        guard ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &parts) == 1 else { return nil }
        return Int64(timegm(&parts))
    }

    deinit { SSL_CTX_free(pointer) }

    private static let serverOptions: UInt64 =
        UInt64(1) << 30  // SSL_OP_NO_RENEGOTIATION: a client cannot cause further handshakes
        | UInt64(1) << 22  // SSL_OP_CIPHER_SERVER_PREFERENCE
        | UInt64(1) << 17  // SSL_OP_NO_COMPRESSION

    private static func make(_ method: OpaquePointer?) throws(HTTPError) -> OpaquePointer {
        guard let context = SSL_CTX_new(method) else { throw HTTPError("TLS: \(lastError())") }
        cs_ssl_ctx_set_min_proto(context, TLS1_2_VERSION)
        SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20:!aNULL")
        cs_ssl_ctx_set_groups(context, "X25519:P-256:P-384")
        // A write may be partial and be retried from another address; OpenSSL releases its buffers while a
        // connection is idle; one read call fetches a whole record.
        cs_ssl_ctx_set_mode(
            context,
            Int(
                SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS
            )
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
