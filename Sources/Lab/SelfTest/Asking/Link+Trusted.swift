import CCrypto
import CountersignTransport
import CountersignTrust
import CountersignWire

extension Link {
    /// A connection to the deployment: with TLS where its URL says so, and then with whom the operator's trust accepts and nobody else.
    static func open(to subject: Subject) throws(Fault) -> Link {
        let descriptor = try socket(to: subject.origin)
        guard subject.origin.security == .tls else { return Link(descriptor) }
        // From here on the link closes the socket.
        guard let context = SSL_CTX_new(TLS_client_method()) else {
            _ = Link(descriptor)
            throw Fault(.failed, "no TLS context")
        }
        defer { SSL_CTX_free(context) }
        cs_ssl_ctx_set_min_proto(context, TLS1_2_VERSION)
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
        let judge = HandshakeJudge(subject.origin.host, subject.trust, subject.authorities)
        guard let judge, judge.install(in: context), let session = SSL_new(context) else {
            _ = Link(descriptor)
            throw Fault(.failed, "no TLS session")
        }
        let link = Link(descriptor, tls: session)
        if !subject.origin.host.isAddress { cs_ssl_set_host_name(session, subject.origin.host.description) }
        SSL_set_fd(session, descriptor)
        let status = SSL_connect(session)
        guard status == 1 else {
            let said = TLSSide.reason(session, status)
            if let verdict = judge.verdict, !verdict.isAccepted {
                throw Fault(.unreachable, "\(subject.origin): not trusted, nothing was sent: \(verdict)")
            }
            throw Fault(.unreachable, "\(subject.origin): no TLS connection, nothing was sent: \(said)")
        }
        return link
    }

    /// The same without TLS, whatever the URL says.
    static func openBare(to subject: Subject) throws(Fault) -> Link { Link(try socket(to: subject.origin)) }

    private static func socket(to origin: Origin) throws(Fault) -> Int32 {
        do throws(NetworkProblem) {
            return try Socket.connect(to: origin.host.description, port: origin.port)
        } catch {
            throw Fault(.unreachable, "\(origin): \(error)")
        }
    }
}
