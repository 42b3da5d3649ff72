import CCrypto

/// Decides, in the handshake and so before a byte of the request is sent, whether to go on with this server.
///
/// The usual checks of chain and validity stay on, and a pin must be met by a certificate of the chain that was verified.
/// The one exception is a certificate that signs itself: nobody vouches for it, so its own pinned key has to. The host
/// name is curl's to check, in both cases.
final class PinnedTrust {
    private let pins: [Pin]
    /// Why the server was turned away, for the message; curl only says that the handshake failed.
    fileprivate(set) var reason: String?

    init(_ pins: [Pin]) { self.pins = pins }

    /// Makes `context` ask this object; it must outlive every connection of the context.
    func install(in context: OpaquePointer) {
        SSL_CTX_set_cert_verify_callback(
            context,
            { store, argument in
                guard let store, let argument else { return 0 }
                return Unmanaged<PinnedTrust>.fromOpaque(argument).takeUnretainedValue().judge(store)
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    private func judge(_ store: OpaquePointer) -> Int32 {
        guard let leaf = X509_STORE_CTX_get0_cert(store) else {
            return refuse(store, "the server showed no certificate")
        }
        if isSelfSigned(leaf) {
            guard meets(leaf) else { return refuse(store, "no pin is met by the server's certificate") }
            guard isCurrent(leaf) else { return refuse(store, "the server's certificate is not valid now") }
            X509_STORE_CTX_set_error(store, X509_V_OK)
            return 1
        }
        guard X509_verify_cert(store) == 1 else {
            let error = X509_STORE_CTX_get_error(store)
            reason = "the server's chain does not verify: \(String(cString: X509_verify_cert_error_string(Int(error))))"
            return 0
        }
        let chain = X509_STORE_CTX_get0_chain(store)
        for index in 0..<cs_x509_count(chain) where cs_x509_at(chain, index).map(meets) == true { return 1 }
        return refuse(store, "no pin is met by the server's certificates")
    }

    private func refuse(_ store: OpaquePointer, _ reason: String) -> Int32 {
        self.reason = reason
        X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION)
        return 0
    }

    private func isSelfSigned(_ certificate: OpaquePointer) -> Bool { X509_self_signed(certificate, 1) == 1 }

    private func isCurrent(_ certificate: OpaquePointer) -> Bool {
        X509_cmp_current_time(X509_get0_notBefore(certificate)) < 0
            && X509_cmp_current_time(X509_get0_notAfter(certificate)) > 0
    }

    private func meets(_ certificate: OpaquePointer) -> Bool {
        var encoded: UnsafeMutablePointer<UInt8>?
        let count = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &encoded)
        guard count > 0, let encoded else { return false }
        defer { cs_openssl_free(encoded) }
        var digest = [UInt8](repeating: 0, count: Int(SHA256_DIGEST_LENGTH))
        CCrypto.SHA256(encoded, Int(count), &digest)
        return pins.contains(Pin(digest: digest))
    }
}
