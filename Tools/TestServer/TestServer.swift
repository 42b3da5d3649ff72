import CCrypto
import CountersignMemory
import CountersignTrust
import Glibc

/// A server on loopback for one test: it has a thread for each connection, optionally TLS, and counters of
/// its input, with which a test can assert that nothing was sent.
package final class TestServer: Sendable {
    /// Counts of the server's input.
    package struct Counters: Sendable {
        /// TCP connections, with or without a TLS handshake.
        package var connections = 0
        /// TLS handshakes that were completed.
        package var handshakes = 0
        /// Handshakes that resumed an earlier session, in which the server sends no certificate. Source:
        /// RFC 8446 §2.2.
        package var resumptions = 0
        /// Bytes of requests, without the overhead of TLS.
        package var received = 0
        /// Connections that have ended; their counts are final.
        package var closed = 0
        /// The TLS records that clients sent on connections that have ended, by content type: 20
        /// change_cipher_spec, 21 alert, 22 handshake, 23 application_data. Counted on the socket, so
        /// including failed handshakes; under TLS 1.3 by the inner type of each decrypted record. A client
        /// that refuses the server sends no record of type 23. Source: RFC 8446 §5.1, §5.2.
        package var records: [UInt8: Int] = [:]
    }

    /// The certificates and TLS settings that the server presents to a client.
    package struct Credentials: Sendable {
        /// The server's certificate with its key, then the intermediate certificates.
        package var chain: [IssuedCertificate]
        /// An OCSP response in DER that the server staples on request; empty for none.
        package var staple: [UInt8]
        /// The highest version of TLS.
        package var newest = Version.tls13
        /// The cipher suites for TLS up to 1.2 by OpenSSL's names, the preferred first
        /// (`AES128-GCM-SHA256:…`); empty for OpenSSL's default.
        package var suites = ""
        /// How TLS 1.2 computes the master secret.
        package var masterSecret = MasterSecret.extended

        /// The computation of the master secret, from which all keys of a session are derived.
        package enum MasterSecret: Sendable {
            /// From a hash of the handshake. Source: RFC 7627.
            case extended
            /// From the two randoms only, as on old servers. Source: RFC 5246 §8.1.
            case ofRandoms
        }

        /// A version of TLS; the versions send certificates and staples in a different order.
        package enum Version: Sendable {
            /// RFC 5246.
            case tls12
            /// RFC 8446.
            case tls13
        }

        /// `staple` is made by ``Staple``.
        package init(_ chain: [IssuedCertificate], staple: [UInt8] = []) {
            self.chain = chain
            self.staple = staple
        }
    }

    /// Whether the server uses TLS.
    package enum Security: Sendable {
        /// Without TLS.
        case plain
        /// With TLS and these credentials.
        case tls(Credentials)
    }

    struct State {
        var tally = Counters()
        var open: Set<Int32> = []
        var isStopped = false
        var isClosed = false
    }

    /// The server's port on 127.0.0.1.
    package let port: UInt16
    private let listener: Int32
    let state = Locked(State())
    let context: TestServerContext?
    private let serve: @Sendable (TestConnection) -> Void

    /// Starts a server. It calls `serve` once for each connection, on a separate thread, where `serve` may
    /// block, and closes the connection when `serve` returns. With TLS, it calls `serve` after a completed
    /// handshake.
    package init(_ security: Security, serve: @escaping @Sendable (TestConnection) -> Void) throws {
        // A write to a connection that the client has closed must not end the process.
        signal(SIGPIPE, SIG_IGN)
        self.serve = serve
        switch security {
        case .plain: context = nil
        case .tls(let identity): context = try TestServerContext(identity)
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
        guard isBound else { throw TestServerError("a listening socket") }
        TestThread.start { [self] in accept() }
    }

    /// The counts so far.
    package var tally: Counters { state.with { $0.tally } }

    /// Whether the server has stopped listening.
    package var isClosed: Bool { state.with { $0.isClosed } }

    /// Blocks the calling thread, that of a connection, for a time.
    package static func rest(milliseconds: UInt32) { usleep(milliseconds * 1000) }

    /// Cuts all connections and stops listening.
    package func stop() {
        state.with { state in
            guard !state.isStopped else { return }
            state.isStopped = true
            shutdown(listener, Int32(SHUT_RDWR))
            for descriptor in state.open { shutdown(descriptor, Int32(SHUT_RDWR)) }
        }
    }

    /// Cuts the open connections and continues to listen.
    package func cutConnections() {
        state.with { for descriptor in $0.open { shutdown(descriptor, Int32(SHUT_RDWR)) } }
    }

    private func accept() {
        while true {
            let descriptor = Glibc.accept(listener, nil, nil)
            guard descriptor >= 0 else {
                if errno == EINTR || errno == ECONNABORTED { continue }
                break
            }
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
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
                TestConnection(descriptor, server: self).map(serve)
                // Removed before it is closed, because the system may reuse the descriptor at once.
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

/// Starts detached threads.
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

/// A failure of a test server, or of making a certificate for a test.
package struct TestServerError: Error, CustomStringConvertible {
    /// What failed and why, in one sentence.
    package let description: String

    init(description: String) { self.description = description }
}
