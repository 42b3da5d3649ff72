import CountersignTrust

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

    /// Whether somebody stands between.
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
    /// Without a byte either way, as long as neither the caller's stream nor his reading is what is waited for.
    public var idleTimeout = Limit.within(.seconds(60))
    /// From being handed over till the answer's last byte.
    public var totalTimeout = Limit.unlimited
    /// In whose certificates chains may end.
    public var authorities = Authorities.machine
    /// Through whom requests go. URLSession takes one from iOS 17 and macOS 14 on; before, the transport refuses it.
    public var proxy = Proxy.none
    /// Where hosts are, in place of what the DNS says. Names on certificates are checked as if the DNS had said it. URLSession has nothing
    /// for that: there it stays empty.
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
