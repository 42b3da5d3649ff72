import CCrypto
import CountersignTestServer
import Glibc

/// The attacker's TLS settings: as a client that checks nothing, or as a server with an issued certificate.
/// HTTP/1.1 only. Safe to share: not changed after `init`, and OpenSSL locks inside.
package final class TLSEndpoint: @unchecked Sendable {
    /// TLS versions by their number on the wire.
    package enum Version: Int32, Sendable, Comparable, CaseIterable {
        case tls10 = 0x0301
        case tls11
        case tls12
        case tls13

        package static func < (left: Version, right: Version) -> Bool { left.rawValue < right.rawValue }
    }

    let pointer: OpaquePointer

    /// A client that accepts any certificate, old versions and weak keys, to find out what a server still
    /// supports.
    package static func client(
        _ versions: ClosedRange<Version> = .tls12 ... .tls13
    ) throws(NetworkError) -> TLSEndpoint {
        guard let pointer = SSL_CTX_new(TLS_client_method()) else { throw .noHandshake("no memory") }
        let side = TLSEndpoint(pointer)
        SSL_CTX_set_security_level(pointer, 0)
        SSL_CTX_set_verify(pointer, SSL_VERIFY_NONE, nil)
        cs_ssl_ctx_set_min_proto(pointer, versions.lowerBound.rawValue)
        cs_ssl_ctx_set_max_proto(pointer, versions.upperBound.rawValue)
        SSL_CTX_set_alpn_protos(pointer, http11, UInt32(http11.count))
        return side
    }

    /// A server with a certificate for `host` that `authority` issues at `time`.
    package static func server(for host: String, by authority: IssuedCertificate, at time: Int64) throws
        -> TLSEndpoint
    {
        try server(showing: authority.issue(CertificateRequest(host, hosts: [host], at: time)))
    }

    /// A server with the given certificate.
    package static func server(showing issued: IssuedCertificate) throws(NetworkError) -> TLSEndpoint {
        guard let pointer = SSL_CTX_new(TLS_server_method()) else { throw .noHandshake("no memory") }
        let side = TLSEndpoint(pointer)
        guard SSL_CTX_use_certificate(pointer, issued.pointer) == 1,
            SSL_CTX_use_PrivateKey(pointer, issued.key) == 1
        else { throw .noHandshake("a certificate that OpenSSL takes") }
        SSL_CTX_set_alpn_select_cb(
            pointer,
            { _, chosen, length, offered, count, _ in
                guard let offered else { return SSL_TLSEXT_ERR_NOACK }
                // The selected protocol points into the offered list, which OpenSSL keeps alive.
                var place = 0
                while place < Int(count) {
                    let name = UnsafeBufferPointer(start: offered + place + 1, count: Int(offered[place]))
                    if name.elementsEqual(TLSEndpoint.http11.dropFirst()) {
                        chosen?.pointee = offered + place + 1
                        length?.pointee = offered[place]
                        return SSL_TLSEXT_ERR_OK
                    }
                    place += 1 + name.count
                }
                return SSL_TLSEXT_ERR_NOACK
            }, nil)
        return side
    }

    private init(_ pointer: OpaquePointer) { self.pointer = pointer }

    deinit { SSL_CTX_free(pointer) }

    /// `http/1.1` as ALPN writes lists. Source: RFC 7301 §3.1.
    private static let http11: [UInt8] = [8] + Array("http/1.1".utf8)

    /// Why OpenSSL's last call on a connection failed: the peer's alert where it sent one, else OpenSSL's
    /// message.
    static func failureReason(of tls: OpaquePointer, status: Int32) -> String {
        let systemError = errno
        let kind = SSL_get_error(tls, status)
        let code = ERR_peek_error()
        ERR_clear_error()
        if kind == SSL_ERROR_ZERO_RETURN { return "closed" }
        if kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE { return RawConnection.timeoutReason }
        guard code != 0 else { return systemError == 0 ? "closed" : String(cString: strerror(systemError)) }
        let reason = Int32(ERR_GET_REASON(code))
        if reason == SSL_R_UNEXPECTED_EOF_WHILE_READING { return "closed without an alert" }
        if reason > SSL_AD_REASON_OFFSET, reason < SSL_AD_REASON_OFFSET + 256,
            let name = SSL_alert_desc_string_long(reason - SSL_AD_REASON_OFFSET)
        {
            return "alert \(String(cString: name))"
        }
        return ERR_reason_error_string(code).map { String(cString: $0) } ?? "error \(code)"
    }
}
