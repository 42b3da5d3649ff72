import CountersignMemory
import CountersignTestServer
import Glibc

/// A listening port on 127.0.0.1 that handles each connection on a thread of its own.
package final class LoopbackListener: Sendable {
    package let number: UInt16
    private let listener: Int32
    private let state = Locked(State())

    private struct State {
        var open: Set<Int32> = []
        var isStopped = false
    }

    /// `serve` is called on a new thread for each connection, with a descriptor that it has to close.
    package init(_ serve: @escaping @Sendable (Int32) -> Void) throws(LabError) {
        (listener, number) = try Socket.listen()
        TestThread.start { [self] in accept(serve) }
    }

    /// Closes the existing connections.
    package func cutConnections() {
        state.with { for descriptor in $0.open { shutdown(descriptor, Int32(SHUT_RDWR)) } }
    }

    /// Closes all connections, and accepts no more.
    package func stop() {
        state.with { state in
            guard !state.isStopped else { return }
            state.isStopped = true
            // Ends the blocking `accept`, whose thread closes the socket.
            shutdown(listener, Int32(SHUT_RDWR))
            for descriptor in state.open { shutdown(descriptor, Int32(SHUT_RDWR)) }
        }
    }

    private func accept(_ serve: @escaping @Sendable (Int32) -> Void) {
        while true {
            let descriptor = Glibc.accept(listener, nil, nil)
            guard descriptor >= 0 else {
                if errno == EINTR || errno == ECONNABORTED { continue }
                break
            }
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
            var yes: Int32 = 1
            setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, socklen_t(MemoryLayout<Int32>.size))
            let isWanted = state.with { state in
                if !state.isStopped { state.open.insert(descriptor) }
                return !state.isStopped
            }
            guard isWanted else {
                close(descriptor)
                break
            }
            TestThread.start { [self] in
                // A duplicate, so that no thread shuts down a descriptor number that was closed and reused.
                let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
                if copy >= 0 { serve(copy) }
                state.with { _ = $0.open.remove(descriptor) }
                close(descriptor)
            }
        }
        close(listener)
    }
}

/// The system's calls about TCP sockets.
enum Socket {
    /// A socket that listens on 127.0.0.1, and its port.
    static func listen() throws(LabError) -> (descriptor: Int32, port: UInt16) {
        // Writing to a closed connection must not end the process.
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
            throw LabError("no listening socket: \(String(cString: strerror(errno)))")
        }
        return (descriptor, UInt16(bigEndian: address.sin_port))
    }

    /// A connection to a host by name or address.
    static func connect(to host: String, port: UInt16) throws(NetworkError) -> Int32 {
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
            // Limits the time of connecting, too.
            setTimeout(of: descriptor, seconds: 10)
            if Glibc.connect(descriptor, entry.ai_addr, entry.ai_addrlen) == 0 {
                var yes: Int32 = 1
                setsockopt(
                    descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, socklen_t(MemoryLayout<Int32>.size))
                return descriptor
            }
            reason = String(cString: strerror(errno))
            close(descriptor)
            next = entry.ai_next
        }
        throw .notReached("\(host):\(port): \(reason)")
    }

    /// The local port of a connection.
    static func port(_ descriptor: Int32) -> UInt16? {
        var address = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let status = withUnsafeMutablePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
        }
        return status == 0 ? UInt16(bigEndian: address.sin_port) : nil
    }

    /// Limits the time of one read or write.
    static func setTimeout(of descriptor: Int32, seconds: Int) {
        var time = timeval(tv_sec: seconds, tv_usec: 0)
        let size = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, size)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &time, size)
    }
}
