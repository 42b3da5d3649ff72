/// How far a request is, both ways.
public struct TransferProgress: Sendable, Hashable {
    /// What is known of how long something is.
    public enum Total: Sendable, Hashable {
        /// So many.
        case bytes(Int64)
        /// It is known at the end only.
        case unknown
    }

    /// Bytes of the request's body that went out.
    public var sent: Int64 = 0
    /// Of the request's body.
    public var toSend = Total.unknown
    /// Bytes of the answer's body that came in.
    public var received: Int64 = 0
    /// Of the answer's body.
    public var toReceive = Total.unknown

    /// At its beginning.
    public init() {}
}
