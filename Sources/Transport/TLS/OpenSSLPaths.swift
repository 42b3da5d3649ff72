import CountersignMemory
import CCrypto
import CountersignTrust

/// Checks chains with OpenSSL, at its second security level: RSA of 2048 bits, SHA-2. Source: RFC 5280 §6.1; RFC 9325 §4.3.
final class OpenSSLPaths: Trust.PathValidation, @unchecked Sendable {
    private let system: AuthorityStore
    private let last = Locked<[Trust.Certificate]>([])

    /// Safe to share: OpenSSL locks the store, which is not changed any more.
    init(_ system: AuthorityStore) { self.system = system }

    private static let securityLevel: Int32 = 2

    /// The chain that was found last; empty where there is none. What is stapled to a handshake is about it.
    var found: [Trust.Certificate] { last.with { $0 } }

    func path(for served: [Trust.Certificate], to anchors: Trust.Anchors, at time: Int64) throws(Trust.PathProblem)
        -> [Trust.Certificate]
    {
        let store: AuthorityStore
        switch anchors {
        case .system: store = system
        case .only(let certificates):
            guard let own = AuthorityStore(.instead(certificates)) else { throw .other("no store of certificates") }
            store = own
        }
        guard let first = served.first, let leaf = ParsedCertificate(first) else {
            throw .other("the server's certificate is not understood")
        }
        guard let context = X509_STORE_CTX_new(), let others = cs_x509_list() else { throw .other("no memory") }
        defer {
            X509_STORE_CTX_free(context)
            cs_x509_list_free(others)
            ERR_clear_error()
        }
        for certificate in served.dropFirst() {
            guard let parsed = ParsedCertificate(certificate), X509_up_ref(parsed.pointer) == 1 else { continue }
            _ = cs_x509_append(others, parsed.pointer)
        }
        guard X509_STORE_CTX_init(context, store.pointer, leaf.pointer, others) == 1,
            X509_STORE_CTX_set_default(context, "ssl_server") == 1, let rules = X509_STORE_CTX_get0_param(context)
        else { throw .other("no check of certificates") }
        X509_VERIFY_PARAM_set_time(rules, time_t(time))
        X509_VERIFY_PARAM_set_auth_level(rules, OpenSSLPaths.securityLevel)
        guard X509_verify_cert(context) == 1 else { throw problem(X509_STORE_CTX_get_error(context)) }
        let chain = X509_STORE_CTX_get0_chain(context)
        var path: [Trust.Certificate] = []
        for index in 0..<cs_x509_count(chain) {
            guard let pointer = cs_x509_at(chain, index), let certificate = ParsedCertificate.certificate(pointer)
            else {
                throw .other("a certificate of the chain is not understood")
            }
            path.append(certificate)
        }
        last.with { [path] in $0 = path }
        return path
    }

    private func problem(_ code: Int32) -> Trust.PathProblem {
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
