import CountersignWire

/// Sends one request to the server and returns its response, with exactly the bytes that were signed. Follows
/// no redirect and sends nothing twice.
package protocol Transport: Sendable {
    func send(_ draft: Draft) async throws(RequestDeliveryError) -> Response
}

/// Why there is no response.
package struct RequestDeliveryError: Error, Sendable {
    package enum Fate: Sendable, Equatable {
        /// No byte of the request left: it may be sent again.
        case notSent
        /// The server may have received it and may have acted on it.
        case notKnown
        /// A response began, was passed on, and broke off.
        case brokenOff
    }

    package var fate: Fate
    /// For people: the host concerned, and what went wrong.
    package var detail: String
    /// The transport's own error, for callers that know it.
    package var underlying: (any Error & Sendable)?

    package init(_ fate: Fate, detail: String, underlying: (any Error & Sendable)? = nil) {
        self.fate = fate
        self.detail = detail
        self.underlying = underlying
    }
}
