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

/// How requests are carried.
public struct TransportOptions: Sendable {
    /// How long something may take.
    public enum Limit: Sendable, Hashable {
        /// Then it is given up.
        case within(Duration)
        /// As long as it likes.
        case unlimited
    }

    /// Whose certificates are the machine's authorities.
    public enum Authorities: Sendable {
        /// Those that OpenSSL was built for, or that `SSL_CERT_FILE` and `SSL_CERT_DIR` name.
        case machine
        /// These in their place.
        case instead([Trust.Certificate])
    }

    /// Whether requests go through a proxy.
    public enum Proxy: Sendable, Hashable {
        /// None, whatever the environment says.
        case none
        /// An HTTP proxy, through which every request gets a tunnel of its own. Source: RFC 9110 §9.3.6.
        case tunnel(Trust.Host, port: UInt16)
    }

    /// Requests on their way at once; those over it wait, first come, first served. One at least.
    public var concurrentRequests = 16
    /// From leaving the queue till the connection stands, TLS included.
    public var connectTimeout = Limit.within(.seconds(10))
    /// The longest time without a byte in either direction, except while the transport waits for the caller's
    /// stream or for the caller to read.
    public var idleTimeout = Limit.within(.seconds(60))
    /// From being handed over till the answer's last byte.
    public var totalTimeout = Limit.unlimited
    /// In whose certificates chains may end.
    public var authorities = Authorities.machine
    /// Through whom requests go. URLSession takes one from iOS 17 and macOS 14 on; before, the transport
    /// refuses it.
    public var proxy = Proxy.none
    /// Where hosts are, in place of what the DNS says. Names on certificates are checked as if the DNS had
    /// said it. URLSession has nothing for that: there it stays empty.
    public var addresses: [Trust.Host: Trust.Host] = [:]
    /// Told of each verdict that is not plain acceptance, on the transport's thread: it must not wait.
    public var observe: @Sendable (Trust.Verdict) -> Void = { _ in }
    /// Where time comes from.
    public var clock = DeviceClock.system
    /// Whether there is any way out of the machine; asked when a name is not found.
    public var reachability = NetworkReachability.system

    /// As above.
    public init() {}
}

/// Where time comes from, as an argument, so that a test can decide it.
public struct DeviceClock: Sendable {
    /// Whole Unix seconds: by these certificates are judged.
    public var wall: @Sendable () -> Int64
    /// Nanoseconds from anywhere, never backwards: by these time-outs are.
    public var monotonic: @Sendable () -> UInt64

    /// From two readings.
    public init(wall: @escaping @Sendable () -> Int64, monotonic: @escaping @Sendable () -> UInt64) {
        self.wall = wall
        self.monotonic = monotonic
    }

    /// The machine's clocks.
    public static let system = DeviceClock(
        wall: { Int64(time(nil)) },
        monotonic: {
            var now = timespec()
            clock_gettime(CLOCK_MONOTONIC, &now)
            return UInt64(now.tv_sec) * 1_000_000_000 + UInt64(now.tv_nsec)
        })
}

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
