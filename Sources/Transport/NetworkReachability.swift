#if canImport(Darwin)
    import Darwin
#else
    import CCurl
    import Glibc
#endif

/// Whether there is any way out of the machine, as an argument.
public struct NetworkReachability: Sendable {
    /// What is known.
    public enum State: Sendable {
        /// There may be a way out.
        case online
        /// There is certainly none.
        case offline
    }

    /// Asked on the transport's thread: it must not wait.
    public var state: @Sendable () -> State

    /// From an answer of one's own.
    public init(_ state: @escaping @Sendable () -> State) { self.state = state }

    /// Offline where no interface but loopback is up and has an address.
    public static let system = NetworkReachability {
        var first: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&first) == 0 else { return .online }
        defer { freeifaddrs(first) }
        var next = first
        while let interface = next?.pointee {
            next = interface.ifa_next
            let flags = interface.ifa_flags
            guard flags & UInt32(IFF_UP) != 0, flags & UInt32(IFF_LOOPBACK) == 0 else { continue }
            let family = interface.ifa_addr.map { Int32($0.pointee.sa_family) }
            if family == AF_INET || family == AF_INET6 { return .online }
        }
        return .offline
    }
}
