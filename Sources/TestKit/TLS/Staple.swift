import CCrypto

/// What an authority says of a certificate, for a server to bring along. Source: RFC 6960 §4.2.
public enum Staple {
    /// How a certificate stands.
    public enum Standing: Sendable {
        /// It holds.
        case good
        /// Its authority took it back.
        case revoked
    }

    /// An OCSP response about `certificate`, signed by `signer` (its issuer, or somebody else, to try that), valid from an
    /// hour before `time` till a day after; in DER.
    public static func make(
        _ standing: Standing, of certificate: Issued, issuedBy issuer: Issued, signedBy signer: Issued, at time: Int64
    ) throws -> [UInt8] {
        guard let basic = OCSP_BASICRESP_new(),
            let id = OCSP_cert_to_id(EVP_sha1(), certificate.pointer, issuer.pointer)
        else { throw TestFailure("no OCSP response") }
        defer {
            OCSP_BASICRESP_free(basic)
            OCSP_CERTID_free(id)
        }
        let (first, last) = (ASN1_TIME_set(nil, Int(time - 3600)), ASN1_TIME_set(nil, time_t(time + 86_400)))
        let revokedAt = standing == .revoked ? ASN1_TIME_set(nil, Int(time - 7200)) : nil
        defer { [first, last, revokedAt].forEach(ASN1_TIME_free) }
        let status = standing == .revoked ? V_OCSP_CERTSTATUS_REVOKED : V_OCSP_CERTSTATUS_GOOD
        guard
            OCSP_basic_add1_status(basic, id, status, OCSP_REVOKED_STATUS_KEYCOMPROMISE, revokedAt, first, last) != nil,
            OCSP_basic_sign(basic, signer.pointer, signer.key, EVP_sha256(), nil, 0) == 1,
            let response = OCSP_response_create(OCSP_RESPONSE_STATUS_SUCCESSFUL, basic)
        else { throw TestFailure("an OCSP response cannot be signed") }
        defer { OCSP_RESPONSE_free(response) }
        var start: UnsafeMutablePointer<UInt8>?
        let count = i2d_OCSP_RESPONSE(response, &start)
        guard count > 0, let start else { throw TestFailure("an OCSP response cannot be written") }
        defer { cs_openssl_free(start) }
        return Array(UnsafeBufferPointer(start: start, count: Int(count)))
    }
}
