import CountersignTestKit
import Glibc

/// The system's calls about TCP sockets.
enum Socket {
    /// A socket that listens on 127.0.0.1, and its port.
    static func listen() throws(StageFault) -> (descriptor: Int32, port: UInt16) {
        // Who goes away must not take the process along.
        signal(SIGPIPE, SIG_IGN)
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(descriptor, address, length) == 0 && Glibc.listen(descriptor, 1024) == 0
                    && getsockname(descriptor, address, &length) == 0
            }
        }
        guard isListening else {
            close(descriptor)
            throw StageFault("no listening socket: \(String(cString: strerror(errno)))")
        }
        return (descriptor, UInt16(bigEndian: address.sin_port))
    }

    /// A connection to a host by name or address.
    static func connect(to host: String, port: UInt16) throws(NetworkProblem) -> Int32 {
        signal(SIGPIPE, SIG_IGN)
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var found: UnsafeMutablePointer<addrinfo>?
        let status = getaddrinfo(host, String(port), &hints, &found)
        guard status == 0 else { throw .notReached("\(host): \(String(cString: gai_strerror(status)))") }
        defer { freeaddrinfo(found) }
        var reason = "no address"
        var next = found
        while let entry = next?.pointee {
            let descriptor = socket(entry.ai_family, entry.ai_socktype | Int32(SOCK_CLOEXEC.rawValue), 0)
            // Bounds the wait for the connection, too.
            setPatience(descriptor, seconds: 10)
            if Glibc.connect(descriptor, entry.ai_addr, entry.ai_addrlen) == 0 {
                var yes: Int32 = 1
                setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, socklen_t(MemoryLayout<Int32>.size))
                return descriptor
            }
            reason = String(cString: strerror(errno))
            close(descriptor)
            next = entry.ai_next
        }
        throw .notReached("\(host):\(port): \(reason)")
    }

    /// The own end's port of a connection.
    static func port(_ descriptor: Int32) -> UInt16? {
        var address = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let status = withUnsafeMutablePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
        }
        return status == 0 ? UInt16(bigEndian: address.sin_port) : nil
    }

    /// How long one reading or writing may wait.
    static func setPatience(_ descriptor: Int32, seconds: Int) {
        var time = timeval(tv_sec: seconds, tv_usec: 0)
        let size = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, size)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &time, size)
    }
}
