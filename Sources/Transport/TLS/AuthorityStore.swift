import CCrypto
import CountersignTrust

/// The machine's authorities, as OpenSSL holds them: read once for a generation, looked up as they are needed.
final class AuthorityStore {
    let pointer: OpaquePointer

    init?(_ authorities: TransportOptions.Authorities) {
        guard let pointer = X509_STORE_new() else { return nil }
        self.pointer = pointer
        switch authorities {
        case .machine: X509_STORE_set_default_paths(pointer)
        case .instead(let certificates):
            // A certificate that was named is an end in itself, whoever issued it.
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

    /// As trust sees it; nil where it is not well formed to our reader, which is stricter than OpenSSL's.
    static func certificate(_ pointer: OpaquePointer) -> Trust.Certificate? {
        var start: UnsafeMutablePointer<UInt8>?
        let count = i2d_X509(pointer, &start)
        guard count > 0, let start else { return nil }
        defer { cs_openssl_free(start) }
        return try? Trust.Certificate(der: Array(UnsafeBufferPointer(start: start, count: Int(count))))
    }
}
