import CCrypto
import CountersignTrust

/// The contents of a certificate to make.
package struct CertificateRequest: Sendable {
    /// The certificate's key.
    package enum Key: Sendable {
        /// A new P-256 key.
        case p256
        /// A new RSA key of this many bits.
        case rsa(Int)
        /// The key of another certificate; a renewal with the same key keeps its pin.
        case of(IssuedCertificate)
    }

    /// The permitted use of a certificate.
    package enum Role: Sendable {
        /// A TLS server's certificate.
        case server
        /// A server's certificate that is valid only with a stapled OCSP response. Source: RFC 7633 §4.2.
        case serverWithStaple
        /// A certificate authority's, for signing other certificates.
        case authority
        /// A TLS client's certificate, which is not valid for a server.
        case client
    }

    /// The subject's common name, by which the issuer is found.
    package var subject: String
    /// The alternative names in the syntax of OpenSSL's configuration: `DNS:` and a name, or `IP:` and an
    /// address.
    package var alternativeNames: [String] = []
    /// The key; by default a new P-256 key.
    package var key = Key.p256
    /// The role; by default a server's.
    package var role = Role.server
    /// The first and the last second of validity, in Unix seconds.
    package var validity: ClosedRange<Int64>

    /// Describes a server's certificate for `hosts`, valid from a day before `time` until 30 days after it.
    package init(_ subject: String, hosts: [String] = [], at time: Int64) {
        self.subject = subject
        validity = (time - 86_400)...(time + 30 * 86_400)
        self.hosts = hosts
    }

    /// The alternative names as host names (which may begin with `*.`) and addresses.
    package var hosts: [String] {
        get { alternativeNames.map { String($0.drop { $0 != ":" }.dropFirst()) } }
        set {
            alternativeNames = newValue.map { host in
                let isAddress = host.contains(":") || host.allSatisfy { $0.isNumber || $0 == "." }
                return (isAddress ? "IP:" : "DNS:") + host
            }
        }
    }
}

/// A certificate made for a test, with its key. Safe to share: neither changes after `init`, and OpenSSL
/// counts references atomically.
package final class IssuedCertificate: @unchecked Sendable {
    /// The certificate in the form that the code under test reads.
    package let certificate: Trust.Certificate
    package let pointer: OpaquePointer
    package let key: OpaquePointer

    private init(certificate pointer: OpaquePointer, key: OpaquePointer) throws {
        self.pointer = pointer
        self.key = key
        var start: UnsafeMutablePointer<UInt8>?
        let count = i2d_X509(pointer, &start)
        guard count > 0, let start else { throw TestServerError("a certificate cannot be written") }
        defer { cs_openssl_free(start) }
        certificate = try Trust.Certificate(der: Array(UnsafeBufferPointer(start: start, count: Int(count))))
    }

    deinit {
        X509_free(pointer)
        EVP_PKEY_free(key)
    }

    /// Makes a self-signed certificate: an authority's root, or a server's.
    package static func selfSigned(_ request: CertificateRequest) throws -> IssuedCertificate {
        try make(request, by: nil)
    }

    /// Makes a certificate that this one signs, even if this one is not an authority's.
    package func issue(_ request: CertificateRequest) throws -> IssuedCertificate {
        try IssuedCertificate.make(request, by: self)
    }

    /// The certificate and its key in PEM, for programs that read files.
    package func pem() throws -> (certificate: [UInt8], key: [UInt8]) {
        (
            try IssuedCertificate.written { PEM_write_bio_X509($0, pointer) },
            try IssuedCertificate.written { PEM_write_bio_PrivateKey($0, key, nil, nil, 0, nil, nil) }
        )
    }

    private static func make(_ request: CertificateRequest, by issuer: IssuedCertificate?) throws
        -> IssuedCertificate
    {
        guard let certificate = X509_new(), let key = newKey(request.key) else {
            throw TestServerError("no certificate")
        }
        X509_set_version(certificate, 2)
        try setSerial(of: certificate)
        ASN1_TIME_set(X509_getm_notBefore(certificate), Int(request.validity.lowerBound))
        ASN1_TIME_set(X509_getm_notAfter(certificate), Int(request.validity.upperBound))
        X509_set_pubkey(certificate, key)
        guard let subject = X509_get_subject_name(certificate) else { throw TestServerError("no subject") }
        let name = Array(request.subject.utf8)
        X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, name, Int32(name.count), -1, 0)
        X509_set_issuer_name(certificate, issuer.map { X509_get_subject_name($0.pointer) } ?? subject)
        try addExtensions(request, to: certificate)
        guard X509_sign(certificate, issuer?.key ?? key, EVP_sha256()) > 0 else {
            throw TestServerError("not signed")
        }
        return try IssuedCertificate(certificate: certificate, key: key)
    }

    private static func newKey(_ kind: CertificateRequest.Key) -> OpaquePointer? {
        switch kind {
        case .p256: return cs_ec_p256_generate()
        case .rsa(let bits): return cs_rsa_generate(UInt32(bits))
        case .of(let other):
            EVP_PKEY_up_ref(other.key)
            return other.key
        }
    }

    private static func setSerial(of certificate: OpaquePointer) throws {
        guard let serial = BN_new() else { throw TestServerError("no serial number") }
        defer { BN_free(serial) }
        BN_rand(serial, 127, -1, 0)
        BN_to_ASN1_INTEGER(serial, X509_get_serialNumber(certificate))
    }

    private static func addExtensions(_ request: CertificateRequest, to certificate: OpaquePointer) throws {
        switch request.role {
        case .authority:
            try add(NID_basic_constraints, value: "critical,CA:TRUE", to: certificate)
            try add(NID_key_usage, value: "critical,keyCertSign,cRLSign,digitalSignature", to: certificate)
        case .server, .serverWithStaple, .client:
            try add(NID_basic_constraints, value: "critical,CA:FALSE", to: certificate)
            try add(NID_key_usage, value: "critical,\(usage(of: request.key))", to: certificate)
        }
        switch request.role {
        case .authority: break
        case .client: try add(NID_ext_key_usage, value: "clientAuth", to: certificate)
        case .server: try add(NID_ext_key_usage, value: "serverAuth", to: certificate)
        case .serverWithStaple:
            try add(NID_ext_key_usage, value: "serverAuth", to: certificate)
            try add(NID_tlsfeature, value: "status_request", to: certificate)
        }
        guard !request.alternativeNames.isEmpty else { return }
        try add(NID_subject_alt_name, value: request.alternativeNames.joined(separator: ","), to: certificate)
    }

    /// The key usage: an RSA key may also encrypt a premaster secret. Source: RFC 5246 §7.4.2.
    private static func usage(of key: CertificateRequest.Key) -> String {
        if case .rsa = key { "digitalSignature,keyEncipherment" } else { "digitalSignature" }
    }

    private static func add(_ kind: Int32, value: String, to certificate: OpaquePointer) throws {
        guard let item = X509V3_EXT_conf_nid(nil, nil, kind, value) else { throw TestServerError(value) }
        defer { X509_EXTENSION_free(item) }
        guard X509_add_ext(certificate, item, -1) == 1 else { throw TestServerError(value) }
    }

    private static func written(_ write: (OpaquePointer) -> Int32) throws -> [UInt8] {
        guard let sink = BIO_new(BIO_s_mem()) else { throw TestServerError("no memory") }
        defer { BIO_free(sink) }
        guard write(sink) == 1 else { throw TestServerError("PEM") }
        var bytes = [UInt8](repeating: 0, count: Int(BIO_ctrl_pending(sink)))
        BIO_read(sink, &bytes, Int32(bytes.count))
        return bytes
    }
}

/// Makes OCSP responses for a server to staple. Source: RFC 6960 §4.2.
package enum Staple {
    /// The status of a certificate.
    package enum CertificateStatus: Sendable {
        /// The certificate is valid.
        case good
        /// The authority has revoked the certificate.
        case revoked
    }

    /// Makes an OCSP response about `certificate` in DER, valid from an hour before `time` until a day
    /// after it. `signer` signs it: the issuer, or another certificate to test an invalid signer.
    package static func make(
        _ standing: CertificateStatus, of certificate: IssuedCertificate, issuedBy issuer: IssuedCertificate,
        signedBy signer: IssuedCertificate, at time: Int64
    ) throws -> [UInt8] {
        guard let basic = OCSP_BASICRESP_new(),
            let id = OCSP_cert_to_id(EVP_sha1(), certificate.pointer, issuer.pointer)
        else { throw TestServerError("no OCSP response") }
        defer {
            OCSP_BASICRESP_free(basic)
            OCSP_CERTID_free(id)
        }
        let (first, last) = (ASN1_TIME_set(nil, Int(time - 3600)), ASN1_TIME_set(nil, time_t(time + 86_400)))
        let revokedAt = standing == .revoked ? ASN1_TIME_set(nil, Int(time - 7200)) : nil
        defer { [first, last, revokedAt].forEach(ASN1_TIME_free) }
        let status = standing == .revoked ? V_OCSP_CERTSTATUS_REVOKED : V_OCSP_CERTSTATUS_GOOD
        guard
            OCSP_basic_add1_status(
                basic, id, status, OCSP_REVOKED_STATUS_KEYCOMPROMISE, revokedAt, first, last) != nil,
            OCSP_basic_sign(basic, signer.pointer, signer.key, EVP_sha256(), nil, 0) == 1,
            let response = OCSP_response_create(OCSP_RESPONSE_STATUS_SUCCESSFUL, basic)
        else { throw TestServerError("an OCSP response cannot be signed") }
        defer { OCSP_RESPONSE_free(response) }
        var start: UnsafeMutablePointer<UInt8>?
        let count = i2d_OCSP_RESPONSE(response, &start)
        guard count > 0, let start else { throw TestServerError("an OCSP response cannot be written") }
        defer { cs_openssl_free(start) }
        return Array(UnsafeBufferPointer(start: start, count: Int(count)))
    }
}

extension TestServerError {
    /// Adds OpenSSL's reason to `what`.
    init(_ what: String) {
        var text = [CChar](repeating: 0, count: 256)
        ERR_error_string_n(ERR_get_error(), &text, text.count)
        ERR_clear_error()
        let reason = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        self.init(description: "\(what): \(reason)")
    }
}
