import CCrypto
import CountersignTrust

/// The OCSP response that a server sends about its certificate in the handshake. Source: RFC 6066 §8, RFC
/// 6960 §3.2.
struct OCSPStaple {
    private let bytes: [UInt8]

    init(_ connection: OpaquePointer) {
        var start: UnsafePointer<UInt8>?
        let count = cs_ssl_status(connection, &start)
        bytes = count > 0 ? Array(UnsafeBufferPointer(start: start, count: count)) : []
    }

    /// The reason against a server whose verified chain is `path`; nil if there is none. `time` in whole Unix
    /// seconds.
    func objection(path: [Trust.Certificate], at time: Int64) -> Trust.Verdict.Reason? {
        // A self-signed certificate has no authority that could revoke it.
        guard path.count > 1, let leaf = ParsedCertificate(path[0]), let issuer = ParsedCertificate(path[1])
        else {
            return nil
        }
        guard !bytes.isEmpty else {
            // RFC 7633 §4.2.3: a certificate that requires an OCSP response is refused without one.
            let demands = X509_get_ext_by_NID(leaf.pointer, NID_tlsfeature, -1) >= 0
            return demands ? .badStaple("the certificate demands one, and there is none") : nil
        }
        defer { ERR_clear_error() }
        let response = bytes.withUnsafeBufferPointer { bytes -> OpaquePointer? in
            var cursor = bytes.baseAddress
            return d2i_OCSP_RESPONSE(nil, &cursor, bytes.count)
        }
        guard let response else { return .badStaple("not an OCSP response") }
        defer { OCSP_RESPONSE_free(response) }
        guard OCSP_response_status(response) == OCSP_RESPONSE_STATUS_SUCCESSFUL,
            let basic = OCSP_response_get1_basic(response)
        else { return .badStaple("the authority did not answer") }
        defer { OCSP_BASICRESP_free(basic) }
        guard isSigned(basic, path: path, issuer: issuer) else {
            return .badStaple("not signed by the certificate's authority")
        }
        return objection(in: basic, leaf: leaf, issuer: issuer, at: time)
    }

    /// Whether the issuer, or a responder that it has authorized, signed the response. Source: RFC 6960
    /// §4.2.2.2.
    private func isSigned(_ basic: OpaquePointer, path: [Trust.Certificate], issuer: ParsedCertificate)
        -> Bool
    {
        guard let anchor = path.last, let store = CertificateStore(.instead([anchor])),
            let known = cs_x509_list()
        else {
            return false
        }
        defer { cs_x509_list_free(known) }
        guard X509_up_ref(issuer.pointer) == 1 else { return false }
        _ = cs_x509_append(known, issuer.pointer)
        // The issuer is part of the verified chain and needs no other proof.
        return OCSP_basic_verify(basic, known, store.pointer, UInt(OCSP_TRUSTOTHER)) == 1
    }

    /// The accepted difference between clocks, in seconds.
    private static let leeway = 300

    private func objection(
        in basic: OpaquePointer, leaf: ParsedCertificate, issuer: ParsedCertificate, at time: Int64
    ) -> Trust.Verdict.Reason? {
        for hash in [EVP_sha1(), EVP_sha256()] {
            guard let id = OCSP_cert_to_id(hash, leaf.pointer, issuer.pointer) else { continue }
            defer { OCSP_CERTID_free(id) }
            var (status, why): (Int32, Int32) = (0, 0)
            var (revokedAt, from, till):
                (
                    UnsafeMutablePointer<ASN1_TIME>?, UnsafeMutablePointer<ASN1_TIME>?,
                    UnsafeMutablePointer<ASN1_TIME>?
                )
            guard OCSP_resp_find_status(basic, id, &status, &why, &revokedAt, &from, &till) == 1 else {
                continue
            }
            // A revocation is final, so an outdated response proves it as well.
            if status == V_OCSP_CERTSTATUS_REVOKED { return .revoked }
            var latest = time_t(time) + OCSPStaple.leeway
            var earliest = time_t(time) - OCSPStaple.leeway
            guard let from, X509_cmp_time(from, &latest) < 0 else { return .badStaple("not valid yet") }
            if let till, X509_cmp_time(till, &earliest) < 0 { return .badStaple("out of date") }
            return status == V_OCSP_CERTSTATUS_GOOD
                ? nil : .badStaple("the authority does not know the certificate")
        }
        return .badStaple("about another certificate")
    }
}
