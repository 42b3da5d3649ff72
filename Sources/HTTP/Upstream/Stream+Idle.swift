import CCrypto
import Glibc

/// What the upstream pool asks of a connection that no request uses.
extension Stream {
    /// Whether OpenSSL holds unread input: records that came in the same segment as the answer. False
    /// without TLS. No system call.
    var hasBufferedInput: Bool { ssl.map { SSL_has_pending($0) == 1 } ?? false }

    /// Whether a request may go out on this connection: the peer has neither closed it nor sent anything that
    /// no request asked for. The socket, OpenSSL's read buffer and its decrypted data are all empty.
    ///
    /// One system call, `recv(MSG_PEEK)`, plain and under TLS. Where it finds bytes under TLS, OpenSSL reads them:
    /// messages after the handshake (NewSessionTicket, KeyUpdate) are consumed, and application data makes the
    /// connection unusable. Source: RFC 8446 §4.6; RFC 9112 §9.3.
    func isQuiet() -> Bool {
        guard !isClosed else { return false }
        var byte: UInt8 = 0
        let count = recv(descriptor, &byte, 1, Int32(MSG_PEEK))
        guard count != 0, count > 0 || errno == EAGAIN else { return false }
        guard let ssl else { return count < 0 }
        if count < 0, SSL_has_pending(ssl) == 0 { return true }
        ERR_clear_error()
        // `SSL_pending` reads 0 for records that were read ahead and not decrypted yet; `SSL_peek` decrypts them.
        let result = SSL_peek(ssl, &byte, 1)
        return result <= 0 && SSL_get_error(ssl, result) == SSL_ERROR_WANT_READ && SSL_has_pending(ssl) == 0
    }

    /// Why the handshake that has just failed did so; for people. Call before ``close()``.
    var handshakeFailure: String {
        guard let ssl else { return "" }
        let verdict = SSL_get_verify_result(ssl)
        if verdict != X509_V_OK { return String(cString: X509_verify_cert_error_string(verdict)) }
        // The newest entry of this thread's queue; the ones before it are of functions further inside.
        let reason = ERR_reason_error_string(ERR_peek_last_error()).map { String(cString: $0) }
        ERR_clear_error()
        return reason ?? "the connection ended"
    }

    /// How far a first attempt to send came.
    enum FirstWrite {
        /// The socket has taken some or all of it. The rest, if any, is still in the buffer.
        case begun
        /// The connection failed before the socket had taken a byte: the peer cannot have read anything.
        case nothingSent(Failure)
        /// The connection failed, and the peer may have read some of it.
        case failed(Failure)
    }

    /// Hands the socket as much of `buffer` as it takes without waiting.
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

        func end(_ failure: Failure) -> FirstWrite {
            // Under TLS a call may fail with a part of its record on the wire.
            let isUntouched =
                buffer.count == count && written == ssl.map { BIO_number_written(SSL_get_wbio($0)) } ?? 0
            return isUntouched ? .nothingSent(failure) : .failed(failure)
        }
    }
}
