import CountersignTrust

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

#if canImport(Darwin)
    import Darwin
#else
    import CCurl
    import Glibc
#endif

/// The options of a transport.
public struct TransportOptions: Sendable {
    /// A time limit.
    public enum Limit: Sendable, Hashable {
        /// The request fails after this time.
        case within(Duration)
        /// No limit.
        case unlimited
    }

    /// The certificates that serve as the system's authorities.
    public enum Authorities: Sendable {
        /// OpenSSL's default authorities, or those in `SSL_CERT_FILE` and `SSL_CERT_DIR`.
        case machine
        /// These certificates instead.
        case instead([Trust.Certificate])
    }

    /// Whether requests go through a proxy.
    public enum Proxy: Sendable, Hashable {
        /// No proxy, whatever the environment variables say.
        case none
        /// An HTTP proxy; every request uses its own tunnel through it. Source: RFC 9110 §9.3.6.
        case tunnel(Trust.Host, port: UInt16)
    }

    /// The number of simultaneous requests, at least one. Further requests wait in order of arrival.
    public var concurrentRequests = 16
    /// From the end of the wait in the queue until the connection is established, including TLS.
    public var connectTimeout = Limit.within(.seconds(10))
    /// The longest time without a byte in either direction, except while the transport waits for the caller's
    /// stream or for the caller to read.
    public var idleTimeout = Limit.within(.seconds(60))
    /// From the call until the last byte of the response.
    public var totalTimeout = Limit.unlimited
    /// The certificates that chains may end in.
    public var authorities = Authorities.machine
    /// The proxy for all requests. On Apple's platforms it requires iOS 17 or macOS 14; on older systems
    /// creating the transport fails.
    public var proxy = Proxy.none
    /// Addresses of hosts that replace the DNS. The check of names in certificates is the same. URLSession
    /// does not support this: leave it empty there.
    public var addresses: [Trust.Host: Trust.Host] = [:]
    /// Called for each verdict except `accepted`, on the transport's thread: it must not wait.
    public var observe: @Sendable (Trust.Verdict) -> Void = { _ in }
    /// The source of the time.
    public var clock = DeviceClock.system
    /// Whether the device has a network connection; checked if a name is not found.
    public var reachability = NetworkReachability.system

    /// The default options.
    public init() {}
}

/// The source of the time, as an argument, so that a test can set it.
public struct DeviceClock: Sendable {
    /// The time for the check of certificates, whole Unix seconds.
    public var wall: @Sendable () -> Int64
    /// The time for time-outs: monotonic nanoseconds from an arbitrary start.
    public var monotonic: @Sendable () -> UInt64

    /// A clock from two functions.
    public init(wall: @escaping @Sendable () -> Int64, monotonic: @escaping @Sendable () -> UInt64) {
        self.wall = wall
        self.monotonic = monotonic
    }

    /// The system's clocks.
    public static let system = DeviceClock(
        wall: { Int64(time(nil)) },
        monotonic: {
            var now = timespec()
            clock_gettime(CLOCK_MONOTONIC, &now)
            return UInt64(now.tv_sec) * 1_000_000_000 + UInt64(now.tv_nsec)
        })
}

/// The check for a network connection, as an argument, so that a test can set it.
public struct NetworkReachability: Sendable {
    /// The result of the check.
    public enum State: Sendable {
        /// There may be a connection.
        case online
        /// There is certainly no connection.
        case offline
    }

    /// Called on the transport's thread: it must not wait.
    public var state: @Sendable () -> State

    /// A custom check.
    public init(_ state: @escaping @Sendable () -> State) { self.state = state }

    /// Offline if no interface except loopback is up and has an address.
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
