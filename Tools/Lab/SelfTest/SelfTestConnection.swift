import CCrypto
import CountersignTransport
import CountersignTrust
import CountersignWire

extension RawConnection {
    /// A connection to the deployment: with TLS where its URL is `https`, and then only to a server whose
    /// certificate the operator's trust accepts.
    static func open(to subject: SelfTestSubject) throws(OperationalError) -> RawConnection {
        let descriptor = try socket(to: subject.origin)
        guard subject.origin.security == .tls else { return RawConnection(descriptor) }
        // From here on the connection closes the socket.
        guard let context = SSL_CTX_new(TLS_client_method()) else {
            _ = RawConnection(descriptor)
            throw OperationalError(.failed, message: "no TLS context")
        }
        defer { SSL_CTX_free(context) }
        cs_ssl_ctx_set_min_proto(context, TLS1_2_VERSION)
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
        let judge = HandshakeJudge(
            host: subject.origin.host, trust: subject.trust, authorities: subject.authorities)
        guard let judge, judge.install(in: context), let session = SSL_new(context) else {
            _ = RawConnection(descriptor)
            throw OperationalError(.failed, message: "no TLS session")
        }
        let link = RawConnection(descriptor, tls: session)
        if !subject.origin.host.isAddress { cs_ssl_set_host_name(session, subject.origin.host.description) }
        SSL_set_fd(session, descriptor)
        let status = SSL_connect(session)
        guard status == 1 else {
            let said = TLSEndpoint.failureReason(of: session, status: status)
            if let verdict = judge.verdict, !verdict.isAccepted {
                throw OperationalError(
                    .unreachable, message: "\(subject.origin): not trusted, nothing was sent: \(verdict)")
            }
            throw OperationalError(
                .unreachable, message: "\(subject.origin): no TLS connection, nothing was sent: \(said)")
        }
        return link
    }

    /// The same without TLS, whatever the URL says.
    static func openBare(to subject: SelfTestSubject) throws(OperationalError) -> RawConnection {
        RawConnection(try socket(to: subject.origin))
    }

    private static func socket(to origin: Origin) throws(OperationalError) -> Int32 {
        do {
            return try Socket.connect(to: origin.host.description, port: origin.port)
        } catch {
            throw OperationalError(.unreachable, message: "\(origin): \(error)")
        }
    }
}
