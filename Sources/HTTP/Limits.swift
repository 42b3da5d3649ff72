/// The limits on input from outside. Every size and queue is bounded, and exceeding a bound has a defined
/// response.
public struct Limits: Sendable, Equatable {
    /// The largest value of ``headBytes``: a head shares one buffer with what the gateway adds to it.
    public static let mostHeadBytes = 60_000
    /// The largest value of ``fieldCount``: fields are marked in a 128-bit mask.
    public static let mostFields = 128

    /// Bytes of request line and fields together.
    public var headBytes = 16_384
    /// Bytes of the request target.
    public var targetBytes = 8_192
    /// Header fields of one request; at most 128.
    public var fieldCount = 100
    /// Bytes of a body that is held whole and verified before anything is forwarded.
    public var heldBodyBytes = 1 << 20
    /// Bytes of such bodies that the process holds at a time, over all loops; callers without a session may
    /// use half of it.
    public var heldBytes = 256 << 20
    /// Bytes of such bodies of one address's verified callers without a session.
    public var addressHeldBytes = 16 << 20
    /// Bytes of such bodies of one account.
    public var accountHeldBytes = 16 << 20
    /// Bytes of bodies of one address that are held before a signature was verified.
    public var addressUnprovenBytes = 4 << 20
    /// Bytes of such bodies in all.
    public var unprovenBytes = 32 << 20
    /// Bytes of a body that streams past the gate.
    public var bodyBytes = 16 << 30
    /// Open client connections, over all workers.
    public var connections = 10_000
    /// Open connections of one address, without those that have proved a session; nil for half of
    /// `connections`, at least 16 and at most 1,000.
    public var addressConnections: Int?
    /// Open connections of one account.
    public var accountConnections = 256
    /// Requests in flight of one address, without those of a session.
    public var addressRequests = 256
    /// Requests in flight of one account.
    public var accountRequests = 256
    /// Requests on one connection.
    public var keepAliveRequests = 10_000
    /// Bytes a second that a client must read of a response while a part of it waits to be sent.
    public var answerRate = 2_048
    /// Seconds over which ``answerRate`` is averaged.
    public var answerRateWindow = 30

    /// The effective value of ``addressConnections``.
    public var effectiveAddressConnections: Int { addressConnections ?? min(1_000, max(16, connections / 2)) }

    /// The limits that `serve` starts with.
    public init() {}
}

/// How long each step may take, in whole seconds. Deadlines are absolute: progress, such as a byte a
/// second, does not extend them.
public struct Deadlines: Sendable, Equatable {
    /// From a request's first byte to the end of its head; on a new connection from its opening, including
    /// the TLS handshake.
    public var head = 10
    /// Between two requests on one connection.
    public var idle = 75
    /// Between two requests on an unproven connection, while more than half of ``Limits/connections`` are
    /// open.
    public var idleUnproven = 10
    /// From the opening of a connection to the last request that it may begin; up to an eighth earlier, so
    /// that connections that were opened together do not end together.
    public var connectionAge = 3_600
    /// For a body; each 32 KiB of it adds a second.
    public var body = 30
    /// For a client to read a further part of a response.
    public var stall = 60
    /// For a connection to the upstream to open.
    public var upstreamConnect = 5
    /// For the upstream to begin its response, and between two parts of it.
    public var upstreamAnswer = 60
    /// For requests in flight when the server is told to stop.
    public var drain = 30

    /// The deadlines that `serve` starts with.
    public init() {}
}
