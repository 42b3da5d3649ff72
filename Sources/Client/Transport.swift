import CountersignWire

/// Carries one request to the server and its answer back, in the very bytes that were signed. Follows no redirect, sends
/// nothing twice.
package protocol Transport: Sendable {
    nonisolated(nonsending) func send(_ draft: Draft) async throws(TransportProblem) -> Response
}

/// Why there is no answer.
package struct TransportProblem: Error, Sendable {
    package enum Fate: Sendable, Equatable {
        /// No byte of the request left: it may be sent again.
        case notSent
        /// It may have been received, and may have been acted upon.
        case notKnown
        /// An answer began, was passed on, and broke off.
        case brokenOff
    }

    package var fate: Fate
    /// For people: whom it concerns, and what went wrong.
    package var detail: String
    /// What the transport itself says, for who knows it.
    package var underlying: (any Error & Sendable)?

    package init(_ fate: Fate, _ detail: String, underlying: (any Error & Sendable)? = nil) {
        self.fate = fate
        self.detail = detail
        self.underlying = underlying
    }
}
