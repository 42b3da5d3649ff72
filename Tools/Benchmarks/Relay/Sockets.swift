import Glibc

/// Ends the program: a measurement of something else than it says is worth nothing.
func fail(_ what: String) -> Never {
    perror("relay: \(what)")
    exit(1)
}

/// The socket calls that all engines share. Everything is on the loopback address.
enum Sockets {
    private static func withLoopback<Result>(
        port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
    ) -> Result {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }

    private static func turnOn(_ option: Int32, level: Int32, of descriptor: Int32) {
        var one: Int32 = 1
        setsockopt(descriptor, level, option, &one, socklen_t(MemoryLayout<Int32>.size))
    }

    static func listen(port: UInt16) -> Int32 {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        turnOn(SO_REUSEADDR, level: SOL_SOCKET, of: listener)
        guard withLoopback(port: port, { bind(listener, $0, $1) }) == 0, Glibc.listen(listener, 1024) == 0
        else { fail("listen") }
        return listener
    }

    /// Prepares an accepted client and connects the upstream connection that belongs to it.
    static func connectUpstream(of client: Int32, port: UInt16) -> Int32 {
        let upstream = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard withLoopback(port: port, { connect(upstream, $0, $1) }) == 0 else { fail("connect") }
        for descriptor in [client, upstream] {
            turnOn(Int32(TCP_NODELAY), level: Int32(IPPROTO_TCP), of: descriptor)
            guard fcntl(descriptor, F_SETFL, O_NONBLOCK) == 0 else { fail("fcntl") }
        }
        return upstream
    }

    /// Sends all of the bytes. The messages are smaller than a socket's buffer, and a connection has one
    /// request at a time, so that a short send means something else is measured.
    static func sendAll(_ bytes: UnsafeRawPointer, count: Int, to descriptor: Int32) {
        guard send(descriptor, bytes, count, Int32(MSG_NOSIGNAL)) == count else { fail("a short send") }
    }
}
