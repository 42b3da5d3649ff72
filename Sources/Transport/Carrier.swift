import CountersignTrust

/// Carries requests to servers that a trust accepts. What it may do with one is little: send it, to the byte as it stands, at most
/// once, to whom it names; follow no redirect, keep no cookie. ``HTTPTransport`` is libcurl's.
public protocol Carrier: Sendable {
    /// Sends `request` and waits for the head of the answer. Cancelling the task ends the transfer. `progress` must not wait.
    func send(
        _ request: OutgoingRequest, progress: @escaping @Sendable (TransferProgress) -> Void
    ) async throws(TransportError) -> IncomingResponse

    /// Puts another trust in force, and cuts every connection that was made under the old one.
    func replaceTrust(by trust: Trust)
}

extension Carrier {
    /// The same, where nobody watches how far it is.
    public func send(_ request: OutgoingRequest) async throws(TransportError) -> IncomingResponse {
        try await send(request) { _ in }
    }
}
