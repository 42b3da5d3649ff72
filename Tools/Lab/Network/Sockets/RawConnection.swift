import CCrypto
import Glibc

/// One end of a TCP connection, with or without TLS, used by one thread. Every call waits ten seconds at
/// most. Closed when it is deallocated.
package final class RawConnection {
    let descriptor: Int32
    private let tls: OpaquePointer?

    /// Takes ownership of the descriptor.
    package init(_ descriptor: Int32, tls: OpaquePointer? = nil) {
        self.descriptor = descriptor
        self.tls = tls
        Socket.setTimeout(of: descriptor, seconds: 10)
    }

    deinit {
        SSL_free(tls)
        close(descriptor)
    }

    /// A new connection as client.
    static func open(to host: String, port: UInt16) throws(NetworkError) -> RawConnection {
        RawConnection(try Socket.connect(to: host, port: port))
    }

    /// The same with TLS.
    static func open(to host: String, port: UInt16, as side: TLSEndpoint, name: String) throws(NetworkError)
        -> RawConnection
    {
        let descriptor = try Socket.connect(to: host, port: port)
        Socket.setTimeout(of: descriptor, seconds: 10)
        guard let tls = SSL_new(side.pointer) else {
            close(descriptor)
            throw .noHandshake("no memory")
        }
        SSL_set_fd(tls, descriptor)
        cs_ssl_set_host_name(tls, name)
        let status = SSL_connect(tls)
        guard status == 1 else {
            let why = TLSEndpoint.failureReason(of: tls, status: status)
            SSL_free(tls)
            close(descriptor)
            throw .noHandshake(why)
        }
        return RawConnection(descriptor, tls: tls)
    }

    /// The server's end after the handshake. Closes the descriptor where the handshake fails.
    package static func accept(_ descriptor: Int32, as side: TLSEndpoint) throws(NetworkError)
        -> RawConnection
    {
        Socket.setTimeout(of: descriptor, seconds: 10)
        guard let tls = SSL_new(side.pointer) else {
            close(descriptor)
            throw .noHandshake("no memory")
        }
        SSL_set_fd(tls, descriptor)
        let status = SSL_accept(tls)
        guard status == 1 else {
            let why = TLSEndpoint.failureReason(of: tls, status: status)
            SSL_free(tls)
            close(descriptor)
            throw .noHandshake(why)
        }
        return RawConnection(descriptor, tls: tls)
    }

    /// The next bytes, 64 KiB at most.
    package func read() -> ReadResult {
        var bytes = [UInt8](repeating: 0, count: 65_536)
        guard let tls else {
            let count = Glibc.read(descriptor, &bytes, bytes.count)
            if count > 0 { return .bytes(Array(bytes.prefix(count))) }
            if count == 0 { return .end("closed") }
            return .end(errno == EAGAIN ? RawConnection.timeoutReason : String(cString: strerror(errno)))
        }
        let count = SSL_read(tls, &bytes, Int32(bytes.count))
        if count > 0 { return .bytes(Array(bytes.prefix(Int(count)))) }
        return .end(TLSEndpoint.failureReason(of: tls, status: count))
    }

    /// The reason after a timeout.
    static let timeoutReason = "nothing came for ten seconds"

    /// The result of a read.
    package enum ReadResult: Sendable, Equatable {
        case bytes([UInt8])
        /// The end of the stream, with the reason.
        case end(String)
    }

    /// Whether all bytes were written.
    @discardableResult
    package func write(_ bytes: [UInt8]) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { rest in
                tls.map { Int(SSL_write($0, rest.baseAddress, Int32(rest.count))) }
                    ?? Glibc.write(descriptor, rest.baseAddress, rest.count)
            }
            guard count > 0 else {
                ERR_clear_error()
                return false
            }
            rest = rest.dropFirst(count)
        }
        return true
    }

    /// The negotiated version, as OpenSSL names it (`TLSv1.3`); nil without TLS.
    package var version: String? { tls.flatMap { SSL_get_version($0) }.map { String(cString: $0) } }
}
