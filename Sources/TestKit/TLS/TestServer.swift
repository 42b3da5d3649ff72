import CountersignMemory
import CCrypto
import CountersignTrust
import Glibc

/// A server on loopback, for one test: a thread for each connection, TLS where it has certificates, and a count of what
/// it has read, so that a test can say that nothing was sent.
public final class TestServer: Sendable {
    /// What has come in.
    public struct Tally: Sendable {
        /// TCP connections, with or without a handshake.
        public var connections = 0
        /// Of TLS that the client went through with.
        public var handshakes = 0
        /// Bytes of requests, without TLS's own.
        public var received = 0
        /// Connections that are over: of them nothing more comes.
        public var closed = 0
        /// The TLS records that clients sent on connections that are over, by content type: 20 change_cipher_spec, 21 alert,
        /// 22 handshake, 23 application_data. Counted on the socket, so also in a handshake that failed; by the type inside,
        /// where TLS 1.3 hides it. Who refuses a server has sent none of 23. Source: RFC 8446 §5.1, §5.2.
        public var records: [UInt8: Int] = [:]
    }

    /// What it shows a client.
    public struct Identity: Sendable {
        /// The server's own first, with its key; then those between it and the root.
        public var chain: [Issued]
        /// An OCSP response in DER that it brings along where asked; empty for none.
        public var staple: [UInt8]
        /// What it speaks at most.
        public var newest = Version.tls13
        /// Of TLS up to 1.2, by OpenSSL's names, the best first (`AES128-GCM-SHA256:…`); empty for OpenSSL's own.
        package var suites = ""
        /// How TLS 1.2 makes it.
        package var masterSecret = MasterSecret.extended

        /// What all keys of a session come from.
        package enum MasterSecret: Sendable {
            /// Bound to the whole handshake. Source: RFC 7627.
            case extended
            /// Of both randoms alone, as on servers of old. Source: RFC 5246 §8.1.
            case ofRandoms
        }

        /// Of TLS; they send certificates and staples in other orders.
        public enum Version: Sendable {
            /// RFC 5246.
            case tls12
            /// RFC 8446.
            case tls13
        }

        /// `staple` is from ``Staple``.
        public init(_ chain: [Issued], staple: [UInt8] = []) {
            self.chain = chain
            self.staple = staple
        }
    }

    /// Whether it speaks TLS.
    public enum Security: Sendable {
        /// It does not.
        case plain
        /// It does, and shows this.
        case tls(Identity)
    }

    struct State {
        var tally = Tally()
        var open: Set<Int32> = []
        var isStopped = false
        var isClosed = false
    }

    /// On 127.0.0.1.
    public let port: UInt16
    private let listener: Int32
    let state = Locked(State())
    let context: ServerContext?
    private let serve: @Sendable (TestConnection) -> Void

    /// `serve` is called once for each connection, on a thread of its own, where it may wait; the connection is closed
    /// when it returns. In TLS it is called once the handshake is through.
    public init(_ security: Security, _ serve: @escaping @Sendable (TestConnection) -> Void) throws {
        // A client that goes away must not take the process along.
        signal(SIGPIPE, SIG_IGN)
        self.serve = serve
        switch security {
        case .plain: context = nil
        case .tls(let identity): context = try ServerContext(identity)
        }
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = listener
        let isBound = withUnsafeMutablePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(descriptor, address, length) == 0 && listen(descriptor, 128) == 0
                    && getsockname(descriptor, address, &length) == 0
            }
        }
        port = UInt16(bigEndian: address.sin_port)
        guard isBound else { throw TestFailure("a listening socket") }
        TestThread.start { [self] in accept() }
    }

    /// So far.
    public var tally: Tally { state.with { $0.tally } }

    /// Whether nothing listens any more.
    public var isClosed: Bool { state.with { $0.isClosed } }

    /// Lets the calling thread, that of a connection, wait a little.
    public static func rest(milliseconds: UInt32) { usleep(milliseconds * 1000) }

    /// Cuts all connections, and takes no more.
    public func stop() {
        state.with { state in
            guard !state.isStopped else { return }
            state.isStopped = true
            shutdown(listener, Int32(SHUT_RDWR))
            for descriptor in state.open { shutdown(descriptor, Int32(SHUT_RDWR)) }
        }
    }

    /// Cuts the connections there are, and goes on listening.
    public func cutConnections() {
        state.with { for descriptor in $0.open { shutdown(descriptor, Int32(SHUT_RDWR)) } }
    }

    private func accept() {
        while true {
            let descriptor = Glibc.accept(listener, nil, nil)
            guard descriptor >= 0 else {
                if errno == EINTR || errno == ECONNABORTED { continue }
                break
            }
            let isWanted = state.with { state in
                guard !state.isStopped else { return false }
                state.tally.connections += 1
                state.open.insert(descriptor)
                return true
            }
            guard isWanted else {
                close(descriptor)
                break
            }
            TestThread.start { [self] in
                TestConnection(descriptor, self).map(serve)
                // Forgotten before it is closed: the number may be given out again at once.
                state.with { state in
                    state.open.remove(descriptor)
                    state.tally.closed += 1
                }
                close(descriptor)
            }
        }
        close(listener)
        state.with { $0.isClosed = true }
    }
}

/// A detached thread.
package enum TestThread {
    private final class Body: Sendable {
        let run: @Sendable () -> Void

        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    package static func start(_ run: @escaping @Sendable () -> Void) {
        var thread = pthread_t()
        let body = Unmanaged.passRetained(Body(run)).toOpaque()
        let status = pthread_create(
            &thread, nil,
            { body in
                guard let body else { return nil }
                Unmanaged<Body>.fromOpaque(body).takeRetainedValue().run()
                return nil
            }, body)
        if status == 0 { pthread_detach(thread) } else { Unmanaged<Body>.fromOpaque(body).release() }
    }
}
