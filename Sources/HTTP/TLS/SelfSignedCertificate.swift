import CCrypto
import Glibc

/// Makes a self-signed P-256 certificate for the server's first start.
///
/// Clients pin its key. The certificate is valid for ten years, because clients trust the pin and a new key
/// would break it. Source: RFC 5280 §4.1–4.2.
package enum SelfSignedCertificate {
    private static let days = 3_650

    /// Certificate and key as PEM. `names` are host names or address literals.
    package static func make(names: [String]) throws(HTTPError) -> (certificate: [UInt8], key: [UInt8]) {
        guard let key = cs_ec_p256_generate(), let certificate = X509_new() else { throw failure() }
        defer {
            EVP_PKEY_free(key)
            X509_free(certificate)
        }
        X509_set_version(certificate, 2)
        try setSerial(of: certificate)
        // Valid from a day ago, for clients whose clocks are slow.
        X509_time_adj_ex(X509_getm_notBefore(certificate), -1, 0, nil)
        X509_time_adj_ex(X509_getm_notAfter(certificate), Int32(days), 0, nil)
        guard X509_set_pubkey(certificate, key) == 1, let subject = X509_get_subject_name(certificate) else {
            throw failure()
        }
        let commonName = Array("Countersign (made at first start)".utf8)
        X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, commonName, Int32(commonName.count), -1, 0)
        X509_set_issuer_name(certificate, subject)
        try add(NID_basic_constraints, value: "critical,CA:FALSE", to: certificate)
        try add(NID_key_usage, value: "critical,digitalSignature", to: certificate)
        try add(NID_ext_key_usage, value: "serverAuth", to: certificate)
        try add(
            NID_subject_alt_name, value: names.map(alternativeName).joined(separator: ","), to: certificate)
        guard X509_sign(certificate, key, EVP_sha256()) > 0 else { throw failure() }
        return (
            try pem { PEM_write_bio_X509($0, certificate) },
            try pem { PEM_write_bio_PrivateKey($0, key, nil, nil, 0, nil, nil) }
        )
    }

    private static func alternativeName(_ name: String) -> String {
        let isAddress = name.contains(":") || name.allSatisfy { $0.isNumber || $0 == "." }
        return (isAddress ? "IP:" : "DNS:") + name
    }

    private static func setSerial(of certificate: OpaquePointer) throws(HTTPError) {
        guard let serial = BN_new() else { throw failure() }
        defer { BN_free(serial) }
        // 127 random bits: a positive and unique serial number. Source: RFC 5280 §4.1.2.2.
        guard BN_rand(serial, 127, -1, 0) == 1,
            BN_to_ASN1_INTEGER(serial, X509_get_serialNumber(certificate)) != nil
        else { throw failure() }
    }

    private static func add(_ kind: Int32, value: String, to certificate: OpaquePointer) throws(HTTPError) {
        guard let item = X509V3_EXT_conf_nid(nil, nil, kind, value) else { throw failure() }
        defer { X509_EXTENSION_free(item) }
        guard X509_add_ext(certificate, item, -1) == 1 else { throw failure() }
    }

    private static func pem(_ write: (OpaquePointer) -> Int32) throws(HTTPError) -> [UInt8] {
        guard let sink = BIO_new(BIO_s_mem()) else { throw failure() }
        defer { BIO_free(sink) }
        guard write(sink) == 1 else { throw failure() }
        var bytes = [UInt8](repeating: 0, count: Int(BIO_ctrl_pending(sink)))
        BIO_read(sink, &bytes, Int32(bytes.count))
        return bytes
    }

    private static func failure() -> HTTPError {
        HTTPError("cannot make a certificate: \(TLSContext.lastError())")
    }
}

extension TLSContext {
    /// `sha256/…` over the SubjectPublicKeyInfo of the listener's certificate: what clients pin. Source: RFC
    /// 7469 §2.4.
    package var spkiPin: String? {
        guard let certificate = SSL_CTX_get0_certificate(pointer) else { return nil }
        var encoded: UnsafeMutablePointer<UInt8>?
        let length = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &encoded)
        guard length > 0, let encoded else { return nil }
        defer { cs_openssl_free(encoded) }
        var digest = [UInt8](repeating: 0, count: 32)
        SHA256(encoded, Int(length), &digest)
        var text = [UInt8](repeating: 0, count: 45)
        EVP_EncodeBlock(&text, digest, 32)
        return "sha256/" + String(decoding: text.dropLast(), as: UTF8.self)
    }
}
