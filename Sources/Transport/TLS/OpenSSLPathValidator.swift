import CCrypto
import CountersignMemory
import CountersignTrust

/// Validates chains with OpenSSL at its security level 2: RSA of 2048 bits, SHA-2. Source: RFC 5280 §6.1;
/// RFC 9325 §4.3.
///
/// Safe to share: `system` is not replaced, and only OpenSSL changes it, under its own lock, when it loads an
/// authority; `last` is under a lock. Each check has its own context.
final class OpenSSLPathValidator: Trust.PathValidation, @unchecked Sendable {
    private let system: CertificateStore
    private let last = Locked<[Trust.Certificate]>([])

    init(_ system: CertificateStore) { self.system = system }

    private static let securityLevel: Int32 = 2

    /// The chain found last; empty if there is none. The stapled OCSP response concerns this chain.
    var found: [Trust.Certificate] { last.with { $0 } }

    func path(for served: [Trust.Certificate], to anchors: Trust.Anchors, at time: Int64) throws(Trust
        .PathError)
        -> [Trust.Certificate]
    {
        let store: CertificateStore
        switch anchors {
        case .system: store = system
        case .only(let certificates):
            guard let own = CertificateStore(.instead(certificates)) else {
                throw .other("no store of certificates")
            }
            store = own
        }
        guard let first = served.first, let leaf = ParsedCertificate(first) else {
            throw .other("the server's certificate is not understood")
        }
        guard let context = X509_STORE_CTX_new(), let others = cs_x509_list() else {
            throw .other("no memory")
        }
        defer {
            X509_STORE_CTX_free(context)
            cs_x509_list_free(others)
            ERR_clear_error()
        }
        for certificate in served.dropFirst() {
            guard let parsed = ParsedCertificate(certificate), X509_up_ref(parsed.pointer) == 1 else {
                continue
            }
            _ = cs_x509_append(others, parsed.pointer)
        }
        guard X509_STORE_CTX_init(context, store.pointer, leaf.pointer, others) == 1,
            X509_STORE_CTX_set_default(context, "ssl_server") == 1,
            let rules = X509_STORE_CTX_get0_param(context)
        else { throw .other("no check of certificates") }
        X509_VERIFY_PARAM_set_time(rules, time_t(time))
        X509_VERIFY_PARAM_set_auth_level(rules, OpenSSLPathValidator.securityLevel)
        guard X509_verify_cert(context) == 1 else { throw pathError(X509_STORE_CTX_get_error(context)) }
        let chain = X509_STORE_CTX_get0_chain(context)
        var path: [Trust.Certificate] = []
        for index in 0..<cs_x509_count(chain) {
            guard let pointer = cs_x509_at(chain, index),
                let certificate = ParsedCertificate.certificate(pointer)
            else {
                throw .other("a certificate of the chain is not understood")
            }
            path.append(certificate)
        }
        last.with { [path] in $0 = path }
        return path
    }

    private func pathError(_ code: Int32) -> Trust.PathError {
        switch code {
        case X509_V_ERR_CERT_HAS_EXPIRED: .expired
        case X509_V_ERR_CERT_NOT_YET_VALID: .notYetValid
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
            X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
            .noPathToAuthority
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT: .selfSigned
        case X509_V_ERR_EE_KEY_TOO_SMALL, X509_V_ERR_CA_KEY_TOO_SMALL, X509_V_ERR_CA_MD_TOO_WEAK: .tooWeak
        case X509_V_ERR_CERT_REVOKED: .revoked
        case X509_V_ERR_INVALID_PURPOSE, X509_V_ERR_INVALID_CA, X509_V_ERR_PATH_LENGTH_EXCEEDED,
            X509_V_ERR_CERT_REJECTED,
            X509_V_ERR_KEYUSAGE_NO_CERTSIGN:
            .notForServers
        case X509_V_ERR_CERT_SIGNATURE_FAILURE: .badSignature
        default: .other(String(cString: X509_verify_cert_error_string(Int(code))))
        }
    }
}

/// The system's authorities in OpenSSL's form: read once per pool, loaded as needed.
final class CertificateStore {
    let pointer: OpaquePointer

    init?(_ authorities: TransportOptions.Authorities) {
        guard let pointer = X509_STORE_new() else { return nil }
        self.pointer = pointer
        switch authorities {
        case .machine: X509_STORE_set_default_paths(pointer)
        case .instead(let certificates):
            // A given certificate is an anchor, whatever its issuer.
            X509_STORE_set_flags(pointer, UInt(X509_V_FLAG_PARTIAL_CHAIN))
            for certificate in certificates {
                guard let parsed = ParsedCertificate(certificate) else { return nil }
                X509_STORE_add_cert(pointer, parsed.pointer)
            }
        }
        ERR_clear_error()
    }

    deinit { X509_STORE_free(pointer) }
}

/// A certificate as OpenSSL holds it.
final class ParsedCertificate {
    let pointer: OpaquePointer

    init?(_ certificate: Trust.Certificate) {
        let der = certificate.der
        let parsed = der.withUnsafeBufferPointer { bytes -> OpaquePointer? in
            var cursor = bytes.baseAddress
            return d2i_X509(nil, &cursor, bytes.count)
        }
        ERR_clear_error()
        guard let parsed else { return nil }
        pointer = parsed
    }

    deinit { X509_free(pointer) }

    /// The certificate as a `Trust.Certificate`; nil if that parser, which is stricter than OpenSSL's,
    /// rejects it.
    static func certificate(_ pointer: OpaquePointer) -> Trust.Certificate? {
        var start: UnsafeMutablePointer<UInt8>?
        let count = i2d_X509(pointer, &start)
        guard count > 0, let start else { return nil }
        defer { cs_openssl_free(start) }
        return try? Trust.Certificate(der: Array(UnsafeBufferPointer(start: start, count: Int(count))))
    }
}
