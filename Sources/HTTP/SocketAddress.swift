import CEvent
import CountersignWire
import Glibc

/// `SOCK_NONBLOCK | SOCK_CLOEXEC`, enumerators of a C type that Swift does not import.
let socketFlags: Int32 = 0o4000 | 0o2000000

/// An Internet address and port, version 4 or 6.
package struct SocketAddress: Sendable, Equatable, CustomStringConvertible {
    private var storage = sockaddr_storage()
    private var length = socklen_t(MemoryLayout<sockaddr_storage>.size)

    init() {}

    /// All addresses of a host. Blocks while the resolver works; a literal address is only parsed.
    package static func resolve(host: String, port: Int) throws(HTTPError) -> [SocketAddress] {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = AI_NUMERICSERV
        var list: UnsafeMutablePointer<addrinfo>?
        let failure = getaddrinfo(host, String(port), &hints, &list)
        guard failure == 0 else { throw HTTPError("\(host): \(String(cString: gai_strerror(failure)))") }
        defer { freeaddrinfo(list) }
        var addresses: [SocketAddress] = []
        var entry = list
        while let info = entry?.pointee {
            if let source = info.ai_addr, Int(info.ai_addrlen) <= MemoryLayout<sockaddr_storage>.size {
                var address = SocketAddress()
                withUnsafeMutableBytes(of: &address.storage) {
                    $0.copyMemory(from: UnsafeRawBufferPointer(start: source, count: Int(info.ai_addrlen)))
                }
                address.length = info.ai_addrlen
                addresses.append(address)
            }
            entry = info.ai_next
        }
        guard !addresses.isEmpty else { throw HTTPError("\(host): no address") }
        return addresses
    }

    /// Opens `count` listening sockets on this address, one for each loop; returns them and the port, which
    /// the kernel chooses when this address has port 0.
    package func listen(sockets count: Int) throws(HTTPError) -> (descriptors: [Int32], port: Int) {
        // With SO_REUSEPORT alone, a second server of the same user would share the port silently. A first
        // socket without it fails if the port is in use.
        if port != 0 { close(try bind(sharing: .no, to: self)) }
        var descriptors: [Int32] = []
        var address = self
        for _ in 0..<count {
            let descriptor = try bind(sharing: .yes, to: address)
            descriptors.append(descriptor)
            address = SocketAddress()
            _ = address.withMutablePointer { getsockname(descriptor, $0, $1) }
        }
        return (descriptors, address.port)
    }

    /// The port of a listening socket.
    package static func port(of descriptor: Int32) -> Int {
        var address = SocketAddress()
        _ = address.withMutablePointer { getsockname(descriptor, $0, $1) }
        return address.port
    }

    /// Whether a listening socket listens on this address; any port matches if this address has port 0.
    package func isListened(by descriptor: Int32) -> Bool {
        var address = SocketAddress()
        guard address.withMutablePointer({ getsockname(descriptor, $0, $1) }) == 0 else { return false }
        return address.network == network && address.family == family && (port == 0 || address.port == port)
    }

    /// Opens one more listening socket on the address of one that ``listen(sockets:)`` opened.
    package static func listen(beside descriptor: Int32) throws(HTTPError) -> Int32 {
        var address = SocketAddress()
        _ = address.withMutablePointer { getsockname(descriptor, $0, $1) }
        return try address.bind(sharing: .yes, to: address)
    }

    private enum PortSharing { case yes, no }

    private func bind(sharing: PortSharing, to address: SocketAddress) throws(HTTPError) -> Int32 {
        let descriptor = socket(family, Int32(SOCK_STREAM.rawValue) | socketFlags, 0)
        guard descriptor >= 0 else { throw .system("cannot make a socket") }
        var one: Int32 = 1
        let size = socklen_t(MemoryLayout<Int32>.size)
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, size)
        if case .yes = sharing { setsockopt(descriptor, SOL_SOCKET, SO_REUSEPORT, &one, size) }
        let bound = address.withPointer { Glibc.bind(descriptor, $0, $1) }
        guard bound == 0, Glibc.listen(descriptor, 1024) == 0 else {
            let code = errno
            close(descriptor)
            throw .system("cannot listen on \(address)", code: code)
        }
        return descriptor
    }

    /// A socket that has begun to connect to this address; -1 with `errno` set if that fails.
    func beginConnect() -> Int32 {
        let descriptor = socket(family, Int32(SOCK_STREAM.rawValue) | socketFlags, 0)
        guard descriptor >= 0 else { return -1 }
        var one: Int32 = 1
        setsockopt(descriptor, cs_ipproto_tcp, TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
        let result = withPointer { connect(descriptor, $0, $1) }
        guard result == 0 || errno == EINPROGRESS else {
            close(descriptor)
            return -1
        }
        return descriptor
    }

    private var family: Int32 { Int32(storage.ss_family) }

    package var port: Int {
        var copy = storage
        return withUnsafeBytes(of: &copy) { Int($0[2]) << 8 | Int($0[3]) }
    }

    /// The address without its port.
    package var network: NetworkAddress {
        var copy = storage
        return withUnsafeBytes(of: &copy) { bytes in
            let range =
                switch family {
                case AF_INET: 4..<8
                case AF_INET6: 8..<24
                default: 0..<0
                }
            return NetworkAddress(bytes: Array(bytes[range]).span) ?? .unknown
        }
    }

    package var description: String {
        var host = [CChar](repeating: 0, count: Int(NI_MAXHOST))
        let result = withPointer { getnameinfo($0, $1, &host, socklen_t(host.count), nil, 0, NI_NUMERICHOST) }
        guard result == 0 else { return "unknown" }
        let text = String(decoding: host.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return family == AF_INET6 ? "[\(text)]:\(port)" : "\(text):\(port)"
    }

    private func withPointer<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
        withUnsafePointer(to: storage) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, length) }
        }
    }

    package static func == (left: SocketAddress, right: SocketAddress) -> Bool {
        guard left.length == right.length else { return false }
        return left.withPointer { one, length in
            right.withPointer { other, _ in memcmp(one, other, Int(length)) == 0 }
        }
    }

    mutating func withMutablePointer<Result>(
        _ body: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Result
    ) -> Result {
        length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, &length) }
        }
    }
}

/// A failure of the engine's environment: a port that is in use, a certificate that cannot be read.
public struct HTTPError: Error, Sendable, Equatable, CustomStringConvertible {
    /// Names the resource and the expectation that it did not meet.
    public let description: String

    init(_ description: String) { self.description = description }

    /// The message, followed by the system's text for `code`.
    static func system(_ message: String, code: Int32 = errno) -> HTTPError {
        HTTPError("\(message): \(String(cString: strerror(code)))")
    }
}
