import CCrypto
import CountersignWire
import Glibc

/// A connection to the upstream, and the generation of the TLS settings under which it was opened.
struct UpstreamConnection {
    let stream: Stream
    let generation: Int
    /// Whether the connection has carried a response before, and so may have been closed since.
    var hasServed = false
}

/// Opens connections to the upstream, on one loop.
struct UpstreamDialer {
    let target: UpstreamTarget
    let loop: EventLoop
    /// Seconds for each address, including the TLS handshake.
    var patience: Int

    /// Tries the candidate addresses in order until one accepts the connection.
    func connect() async throws(Refusal) -> UpstreamConnection {
        let route = target.route(at: loop.seconds)
        var last = Refusal(.upstreamFailed, detail: "\(route.host): no address is known for it")
        for address in route.addresses {
            let descriptor = address.beginConnect()
            guard descriptor >= 0 else {
                let code = errno
                last = Refusal(
                    .upstreamFailed, detail: HTTPError.system("\(address)", code: code).description)
                // A shortage on this machine says nothing about the address.
                if !UpstreamDialer.localFailures.contains(code) { target.didFail(address, at: loop.seconds) }
                continue
            }
            do {
                let stream = try await open(descriptor, to: address, by: route)
                target.didConnect(to: address, at: loop.seconds, from: route.generation)
                return UpstreamConnection(stream: stream, generation: route.generation)
            } catch {
                target.didFail(address, at: loop.seconds)
                last = error
            }
        }
        throw last
    }

    private static let localFailures = [EMFILE, ENFILE, ENOMEM, ENOBUFS, EADDRNOTAVAIL]

    private func open(
        _ descriptor: Int32, to address: SocketAddress, by route: UpstreamTarget.Route
    ) async throws(Refusal) -> Stream {
        let stream = Stream(descriptor: descriptor, loop: loop)
        stream.deadline = loop.seconds + Int64(patience) + 1
        do {
            try await stream.finishConnect()
            if let tls = route.tls { try await stream.startTLS(tls, as: .client(host: route.host)) }
            return stream
        } catch {
            let reason = stream.handshakeFailure
            stream.close()
            switch error {
            case .timedOut:
                throw Refusal(.upstreamTimeout, detail: "\(address): no connection within \(patience) s")
            case .tls:
                throw Refusal(.upstreamFailed, detail: "\(address): the TLS handshake failed: \(reason)")
            case .closed: throw Refusal(.upstreamFailed, detail: "\(address): refused")
            }
        }
    }
}

/// Checks of an idle connection, for the upstream pool.
extension Stream {
    /// Whether OpenSSL holds unread input, such as records in the same segment as the response. False
    /// without TLS. Makes no system call.
    var hasBufferedInput: Bool { ssl.map { SSL_has_pending($0) == 1 } ?? false }

    /// Whether a request may be sent on this connection: the peer has neither closed it nor sent
    /// unsolicited data. The socket, OpenSSL's read buffer and its decrypted data are all empty.
    ///
    /// Makes one system call, `recv(MSG_PEEK)`. If that finds bytes under TLS, OpenSSL reads them:
    /// post-handshake messages (NewSessionTicket, KeyUpdate) are consumed, and application data makes the
    /// connection unusable. Source: RFC 8446 §4.6; RFC 9112 §9.3.
    func isQuiet() -> Bool {
        guard !isClosed else { return false }
        var byte: UInt8 = 0
        let count = recv(descriptor, &byte, 1, Int32(MSG_PEEK))
        guard count != 0, count > 0 || errno == EAGAIN else { return false }
        guard let ssl else { return count < 0 }
        if count < 0, SSL_has_pending(ssl) == 0 { return true }
        ERR_clear_error()
        // `SSL_pending` is 0 for records that were read ahead and not yet decrypted; `SSL_peek` decrypts
        // them.
        let result = SSL_peek(ssl, &byte, 1)
        return result <= 0 && SSL_get_error(ssl, result) == SSL_ERROR_WANT_READ && SSL_has_pending(ssl) == 0
    }

    /// The reason why the handshake has just failed, as text for operators. Call before ``close()``.
    var handshakeFailure: String {
        guard let ssl else { return "" }
        let verdict = SSL_get_verify_result(ssl)
        if verdict != X509_V_OK { return String(cString: X509_verify_cert_error_string(verdict)) }
        // The newest entry of this thread's error queue; earlier entries come from inner functions.
        let reason = ERR_reason_error_string(ERR_peek_last_error()).map { String(cString: $0) }
        ERR_clear_error()
        return reason ?? "the connection ended"
    }

    /// The outcome of the first attempt to send.
    enum FirstWrite {
        /// The socket has accepted some or all of the bytes. The rest, if any, is still in the buffer.
        case begun
        /// The connection failed before the socket accepted a byte: the peer cannot have read anything.
        case nothingSent(StreamError)
        /// The connection failed, and the peer may have read some of the bytes.
        case failed(StreamError)
    }

    /// Writes as much of `buffer` as the socket accepts without waiting.
    func writeAtOnce(_ buffer: Buffer) -> FirstWrite {
        guard !isClosed else { return .nothingSent(.closed) }
        let count = buffer.count
        let written = ssl.map { BIO_number_written(SSL_get_wbio($0)) } ?? 0
        while !buffer.isEmpty {
            switch writeOnce(buffer.filled) {
            case .done(let taken): buffer.take(taken)
            case .wantsWrite, .wantsRead: return .begun
            case .ended: return end(.closed)
            case .failed(let failure): return end(failure)
            }
        }
        return .begun

        func end(_ failure: StreamError) -> FirstWrite {
            // Under TLS, a call may fail after a part of its record was sent.
            let isUntouched =
                buffer.count == count && written == ssl.map { BIO_number_written(SSL_get_wbio($0)) } ?? 0
            return isUntouched ? .nothingSent(failure) : .failed(failure)
        }
    }
}
