import CountersignTrust

/// Sends requests to servers that a trust accepts. A transport sends each request unchanged, at most once, to
/// the request's own origin; it follows no redirect and keeps no cookie. ``HTTPTransport`` uses libcurl.
public protocol RequestTransport: Sendable {
    /// Sends `request` and waits for the head of the response. Cancelling the task ends the transfer.
    /// `progress` must not wait.
    func send(
        _ request: OutgoingRequest, progress: @escaping @Sendable (TransferProgress) -> Void
    ) async throws(TransportError) -> IncomingResponse

    /// Replaces the trust and closes every connection that was made under the old one.
    func replaceTrust(by trust: Trust)
}

extension RequestTransport {
    /// The same without progress reports.
    public func send(_ request: OutgoingRequest) async throws(TransportError) -> IncomingResponse {
        try await send(request) { _ in }
    }
}

/// The progress of a request and its response.
public struct TransferProgress: Sendable, Hashable {
    /// The length of a body, as far as it is known.
    public enum Total: Sendable, Hashable {
        /// The number of bytes.
        case bytes(Int64)
        /// Known only at the end.
        case unknown
    }

    /// Bytes of the request's body sent so far.
    public var sent: Int64 = 0
    /// The length of the request's body.
    public var toSend = Total.unknown
    /// Bytes of the response's body received so far.
    public var received: Int64 = 0
    /// The length of the response's body.
    public var toReceive = Total.unknown

    /// The progress before the first byte.
    public init() {}
}
