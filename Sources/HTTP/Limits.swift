/// How large anything from outside may be. Every size and queue has a bound, and going over it is an answer.
public struct Limits: Sendable, Equatable {
    /// A head is read into one buffer, beside what we add to it.
    public static let mostHeadBytes = 60_000
    /// As many as a 128-bit mask can name.
    public static let mostFields = 128

    /// Bytes of request line and fields together.
    public var headBytes = 16_384
    /// Bytes of the request target.
    public var targetBytes = 8_192
    /// Header fields of one request; at most 128.
    public var fieldCount = 100
    /// Bytes of a body that is held whole and verified before anything is forwarded.
    public var heldBodyBytes = 1 << 20
    /// Bytes of such bodies that one loop holds at a time, over all its connections.
    public var heldBytes = 256 << 20
    /// Bytes of a body that streams past the gate.
    public var bodyBytes = 16 << 30
    /// Open client connections, over all workers.
    public var connections = 10_000

    /// The limits that `serve` starts with.
    public init() {}
}

/// How long anything may take, in whole seconds. Deadlines are absolute: a byte a second does not move them.
public struct Deadlines: Sendable, Equatable {
    /// From a request's first byte to the end of its head; on a new connection from its opening, handshake included.
    public var head = 10
    /// Between two requests on one connection.
    public var idle = 75
    /// For a body, and a second more for each 32 KiB of it.
    public var body = 30
    /// For a client to take some part of an answer.
    public var stall = 60
    /// For a connection to the upstream to open.
    public var upstreamConnect = 5
    /// For the upstream to begin its answer, and between two parts of it.
    public var upstreamAnswer = 60
    /// For requests in flight, once told to stop.
    public var drain = 30

    /// The deadlines that `serve` starts with.
    public init() {}
}
