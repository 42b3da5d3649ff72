import CCrypto
import Glibc

/// One end of a TCP connection, with TLS or without, read and written by the one thread that holds it. Every call waits, ten seconds at
/// most. Closed when nobody holds it any more.
package final class Link {
    let descriptor: Int32
    private let tls: OpaquePointer?

    /// Takes over the descriptor.
    package init(_ descriptor: Int32, tls: OpaquePointer? = nil) {
        self.descriptor = descriptor
        self.tls = tls
        Socket.setPatience(descriptor, seconds: 10)
    }

    deinit {
        SSL_free(tls)
        close(descriptor)
    }

    /// The client's end of a new connection.
    static func open(to host: String, port: UInt16) throws(NetworkProblem) -> Link {
        Link(try Socket.connect(to: host, port: port))
    }

    /// The same, with TLS on top.
    static func open(to host: String, port: UInt16, as side: TLSSide, name: String) throws(NetworkProblem) -> Link {
        let descriptor = try Socket.connect(to: host, port: port)
        Socket.setPatience(descriptor, seconds: 10)
        guard let tls = SSL_new(side.pointer) else {
            close(descriptor)
            throw .noHandshake("no memory")
        }
        SSL_set_fd(tls, descriptor)
        cs_ssl_set_host_name(tls, name)
        let status = SSL_connect(tls)
        guard status == 1 else {
            let why = TLSSide.reason(tls, status)
            SSL_free(tls)
            close(descriptor)
            throw .noHandshake(why)
        }
        return Link(descriptor, tls: tls)
    }

    /// The server's end, once the handshake is through. Closes the descriptor where it is not.
    package static func accept(_ descriptor: Int32, as side: TLSSide) throws(NetworkProblem) -> Link {
        Socket.setPatience(descriptor, seconds: 10)
        guard let tls = SSL_new(side.pointer) else {
            close(descriptor)
            throw .noHandshake("no memory")
        }
        SSL_set_fd(tls, descriptor)
        let status = SSL_accept(tls)
        guard status == 1 else {
            let why = TLSSide.reason(tls, status)
            SSL_free(tls)
            close(descriptor)
            throw .noHandshake(why)
        }
        return Link(descriptor, tls: tls)
    }

    /// What comes next, 64 KiB at most.
    package func read() -> Reading {
        var bytes = [UInt8](repeating: 0, count: 65_536)
        guard let tls else {
            let count = Glibc.read(descriptor, &bytes, bytes.count)
            if count > 0 { return .bytes(Array(bytes.prefix(count))) }
            if count == 0 { return .end("closed") }
            return .end(errno == EAGAIN ? Link.silence : String(cString: strerror(errno)))
        }
        let count = SSL_read(tls, &bytes, Int32(bytes.count))
        if count > 0 { return .bytes(Array(bytes.prefix(Int(count)))) }
        return .end(TLSSide.reason(tls, count))
    }

    /// The reason where nothing came in time.
    static let silence = "nothing came for ten seconds"

    /// What a ``Link`` gives.
    package enum Reading: Sendable, Equatable {
        case bytes([UInt8])
        /// Nothing more comes; with the reason.
        case end(String)
    }

    /// Whether all of it went out.
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

    /// The version that was agreed on, as OpenSSL names it (`TLSv1.3`); nil without TLS.
    package var version: String? { tls.flatMap { SSL_get_version($0) }.map { String(cString: $0) } }
}
