import CCrypto
import CountersignTrust

/// A certificate made for a test, with its key. Safe to share: neither is changed after `init`, and OpenSSL counts holders.
public final class Issued: @unchecked Sendable {
    /// As the code under test sees it.
    public let certificate: Trust.Certificate
    package let pointer: OpaquePointer
    package let key: OpaquePointer

    private init(_ pointer: OpaquePointer, _ key: OpaquePointer) throws {
        self.pointer = pointer
        self.key = key
        var start: UnsafeMutablePointer<UInt8>?
        let count = i2d_X509(pointer, &start)
        guard count > 0, let start else { throw TestFailure("a certificate cannot be written") }
        defer { cs_openssl_free(start) }
        certificate = try Trust.Certificate(der: Array(UnsafeBufferPointer(start: start, count: Int(count))))
    }

    deinit {
        X509_free(pointer)
        EVP_PKEY_free(key)
    }

    /// One that signs itself: an authority's root, or a server on its own.
    public static func selfSigned(_ request: CertificateRequest) throws -> Issued { try make(request, by: nil) }

    /// One that this one signs, whether it is an authority's or not.
    public func issue(_ request: CertificateRequest) throws -> Issued { try Issued.make(request, by: self) }

    /// The certificate, and where asked for its key, in PEM: for programs that read files.
    public func pem() throws -> (certificate: [UInt8], key: [UInt8]) {
        (
            try Issued.written { PEM_write_bio_X509($0, pointer) },
            try Issued.written { PEM_write_bio_PrivateKey($0, key, nil, nil, 0, nil, nil) }
        )
    }

    private static func make(_ request: CertificateRequest, by issuer: Issued?) throws -> Issued {
        guard let certificate = X509_new(), let key = newKey(request.key) else { throw TestFailure("no certificate") }
        X509_set_version(certificate, 2)
        try setSerial(of: certificate)
        ASN1_TIME_set(X509_getm_notBefore(certificate), Int(request.validity.lowerBound))
        ASN1_TIME_set(X509_getm_notAfter(certificate), Int(request.validity.upperBound))
        X509_set_pubkey(certificate, key)
        guard let subject = X509_get_subject_name(certificate) else { throw TestFailure("no subject") }
        let name = Array(request.subject.utf8)
        X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, name, Int32(name.count), -1, 0)
        X509_set_issuer_name(certificate, issuer.map { X509_get_subject_name($0.pointer) } ?? subject)
        try addExtensions(request, to: certificate)
        guard X509_sign(certificate, issuer?.key ?? key, EVP_sha256()) > 0 else { throw TestFailure("not signed") }
        return try Issued(certificate, key)
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
        guard let serial = BN_new() else { throw TestFailure("no serial number") }
        defer { BN_free(serial) }
        BN_rand(serial, 127, -1, 0)
        BN_to_ASN1_INTEGER(serial, X509_get_serialNumber(certificate))
    }

    private static func addExtensions(_ request: CertificateRequest, to certificate: OpaquePointer) throws {
        switch request.role {
        case .authority:
            try add(NID_basic_constraints, "critical,CA:TRUE", to: certificate)
            try add(NID_key_usage, "critical,keyCertSign,cRLSign,digitalSignature", to: certificate)
        case .server, .serverWithStaple, .client:
            try add(NID_basic_constraints, "critical,CA:FALSE", to: certificate)
            try add(NID_key_usage, "critical,\(usage(of: request.key))", to: certificate)
        }
        switch request.role {
        case .authority: break
        case .client: try add(NID_ext_key_usage, "clientAuth", to: certificate)
        case .server: try add(NID_ext_key_usage, "serverAuth", to: certificate)
        case .serverWithStaple:
            try add(NID_ext_key_usage, "serverAuth", to: certificate)
            try add(NID_tlsfeature, "status_request", to: certificate)
        }
        guard !request.alternativeNames.isEmpty else { return }
        try add(NID_subject_alt_name, request.alternativeNames.joined(separator: ","), to: certificate)
    }

    /// An RSA key may also be what a premaster secret is sent under. Source: RFC 5246 §7.4.2.
    private static func usage(of key: CertificateRequest.Key) -> String {
        if case .rsa = key { "digitalSignature,keyEncipherment" } else { "digitalSignature" }
    }

    private static func add(_ kind: Int32, _ value: String, to certificate: OpaquePointer) throws {
        guard let item = X509V3_EXT_conf_nid(nil, nil, kind, value) else { throw TestFailure(value) }
        defer { X509_EXTENSION_free(item) }
        guard X509_add_ext(certificate, item, -1) == 1 else { throw TestFailure(value) }
    }

    private static func written(_ write: (OpaquePointer) -> Int32) throws -> [UInt8] {
        guard let sink = BIO_new(BIO_s_mem()) else { throw TestFailure("no memory") }
        defer { BIO_free(sink) }
        guard write(sink) == 1 else { throw TestFailure("PEM") }
        var bytes = [UInt8](repeating: 0, count: Int(BIO_ctrl_pending(sink)))
        BIO_read(sink, &bytes, Int32(bytes.count))
        return bytes
    }
}
