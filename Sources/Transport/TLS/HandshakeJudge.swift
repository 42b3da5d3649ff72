import CCrypto
import CountersignTrust

/// Decides during the handshake, before a byte of the request is sent, whether to continue with a server.
/// Belongs to one connection; used on one thread only, the transport's if the transport opens the connection.
package final class HandshakeJudge {
    private let host: Trust.Host
    private let trust: Trust
    private let paths: OpenSSLPathValidator
    private let clock: DeviceClock
    private let observe: @Sendable (Trust.Verdict) -> Void
    private var served: [Trust.Certificate] = []
    /// The verdict; nil until a server has sent its certificates.
    package private(set) var verdict: Trust.Verdict?

    init(host: Trust.Host, pool generation: ConnectionPool, options: TransportOptions) {
        self.host = host
        trust = generation.trust
        paths = OpenSSLPathValidator(generation.authorities)
        clock = options.clock
        observe = options.observe
    }

    /// For a connection that the transport does not open. Nil if OpenSSL rejects the authorities.
    package init?(host: Trust.Host, trust: Trust, authorities: TransportOptions.Authorities) {
        guard let store = CertificateStore(authorities) else { return nil }
        self.host = host
        self.trust = trust
        paths = OpenSSLPathValidator(store)
        clock = .system
        observe = { _ in }
    }

    /// The index under which a context holds its judge: the connection may outlive the transfer that opened
    /// it, and the server may send certificates again.
    private static let place = cs_ssl_ctx_place { _, judge, _, _, _, _ in
        guard let judge else { return }
        Unmanaged<HandshakeJudge>.fromOpaque(judge).release()
    }

    /// Makes `context` call this object and retain it. False if OpenSSL fails.
    package func install(in context: OpaquePointer) -> Bool {
        let own = Unmanaged.passRetained(self)
        guard HandshakeJudge.place >= 0,
            SSL_CTX_set_ex_data(context, HandshakeJudge.place, own.toOpaque()) == 1
        else {
            own.release()
            return false
        }
        SSL_CTX_set_cert_verify_callback(
            context,
            { store, judge in
                guard let store, let judge else { return 0 }
                return Unmanaged<HandshakeJudge>.fromOpaque(judge).takeUnretainedValue().judge(store) ? 1 : 0
            }, own.toOpaque())
        return cs_ssl_ctx_ask_status(
            context,
            { connection, judge in
                guard let connection, let judge else { return 0 }
                return Unmanaged<HandshakeJudge>.fromOpaque(judge).takeUnretainedValue().judge(
                    staple: connection)
                    ? 1 : 0
            }, own.toOpaque()) == 1
    }

    private func judge(_ store: OpaquePointer) -> Bool {
        let shown = X509_STORE_CTX_get0_untrusted(store)
        served = []
        for index in 0..<cs_x509_count(shown) {
            guard let pointer = cs_x509_at(shown, index) else { continue }
            // The server's own certificate must be parsed; others that cannot be parsed are skipped.
            guard let certificate = ParsedCertificate.certificate(pointer) else {
                if index == 0 { break } else { continue }
            }
            served.append(certificate)
        }
        let verdict = trust.judge(
            Trust.Evidence(host: host, served: served, time: clock.wall(), paths: paths))
        record(verdict)
        X509_STORE_CTX_set_error(store, verdict.isAccepted ? X509_V_OK : X509_V_ERR_APPLICATION_VERIFICATION)
        return verdict.isAccepted
    }

    private func record(_ verdict: Trust.Verdict) {
        self.verdict = verdict
        if verdict.decision != .accepted { observe(verdict) }
    }

    /// Called after the certificates and before the request. A server need not staple an OCSP response unless
    /// its certificate requires one; a stapled response that shows a revocation, or is invalid, refuses the
    /// server.
    private func judge(staple connection: OpaquePointer) -> Bool {
        guard let verdict, verdict.isAccepted else { return false }
        guard let reason = OCSPStaple(connection).objection(path: paths.found, at: clock.wall()) else {
            return true
        }
        record(verdict.refused(reason))
        return false
    }
}
