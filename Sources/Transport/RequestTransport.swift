import CountersignTrust

/// Carries requests to servers that a trust accepts. What it may do with one is little: send it, to the byte
/// as it stands, at most once, to whom it names; follow no redirect, keep no cookie. ``HTTPTransport`` is
/// libcurl's.
public protocol RequestTransport: Sendable {
    /// Sends `request` and waits for the head of the answer. Cancelling the task ends the transfer.
    /// `progress` must not wait.
    func send(
        _ request: OutgoingRequest, progress: @escaping @Sendable (TransferProgress) -> Void
    ) async throws(TransportError) -> IncomingResponse

    /// Puts another trust in force, and cuts every connection that was made under the old one.
    func replaceTrust(by trust: Trust)
}

extension RequestTransport {
    /// The same without progress reports.
    public func send(_ request: OutgoingRequest) async throws(TransportError) -> IncomingResponse {
        try await send(request) { _ in }
    }
}

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
