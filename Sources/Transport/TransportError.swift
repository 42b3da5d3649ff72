import CountersignTrust

/// Why there is no answer, or not all of it, and what that says of the request.
public struct TransportError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What became of the request.
    public enum Fate: Sendable, Hashable {
        /// No byte of it left: it may be sent again.
        case notSent
        /// It may have been received, and may have been acted upon.
        case outcomeUnknown
        /// It was received: an answer began, and broke off.
        case brokenOff
    }

    /// What a time-out was for.
    public enum Phase: Sendable, Hashable {
        /// Name, TCP and TLS.
        case connecting
        /// Nothing came and nothing went.
        case idle
        /// All of it, the wait for a place included.
        case total
    }

    /// What happened.
    public enum Cause: Sendable, Hashable {
        /// There is no way out of this machine.
        case offline
        /// The name does not lead to an address.
        case hostNotFound
        /// No process listens at that port.
        case connectionRefused
        /// A limit of ``TransportOptions`` was reached.
        case timedOut(Phase)
        /// The server does not meet the trust.
        case untrusted(Trust.Verdict)
        /// No TLS connection comes about, for a reason other than trust.
        case tls(String)
        /// The connection was lost, or there is none, for another reason.
        case connectionLost(String)
        /// What came is not HTTP.
        case malformedAnswer(String)
        /// The answer has more bytes than the reader wanted.
        case answerTooLarge(limit: Int)
        /// The caller's task was cancelled, or the caller released the response.
        case cancelled
        /// Another trust took the place of the one under which the connection was made.
        case trustReplaced
        /// The body's stream threw, or had another length than was said.
        case body(String)
        /// The body can be sent once only, and was.
        case bodyUsedUp
        /// The request is none that can be sent.
        case malformedRequest(String)
        /// The machine or a library does not do its part.
        case machine(String)
    }

    /// What happened.
    public let cause: Cause
    /// What that says of the request.
    public let fate: Fate

    /// From its parts: transports of other kinds, for tests and for other platforms, say the same.
    public init(_ cause: Cause, fate: Fate) {
        self.cause = cause
        self.fate = fate
    }

    /// One line for people.
    public var description: String {
        switch fate {
        case .notSent: "\(cause); nothing was sent"
        case .outcomeUnknown: "\(cause); whether the request was received is not known"
        case .brokenOff: "\(cause); the answer broke off"
        }
    }
}

extension TransportError.Cause: CustomStringConvertible {
    /// A few words for people.
    public var description: String {
        switch self {
        case .offline: "the machine is offline"
        case .hostNotFound: "the host is not found"
        case .connectionRefused: "nobody listens there"
        case .timedOut(.connecting): "no connection in time"
        case .timedOut(.idle): "nothing more came or went"
        case .timedOut(.total): "it took too long"
        case .untrusted(let verdict): "the server is not trusted (\(verdict))"
        case .tls(let detail): "no TLS connection (\(detail))"
        case .connectionLost(let detail): "no connection any more (\(detail))"
        case .malformedAnswer(let detail): "the answer is not understood (\(detail))"
        case .answerTooLarge(let limit): "the answer has over \(limit) bytes"
        case .cancelled: "it was cancelled"
        case .trustReplaced: "the pins changed, and the connection was cut"
        case .body(let detail): "the request's body: \(detail)"
        case .bodyUsedUp: "the request's body was sent before, and can be sent once only"
        case .malformedRequest(let detail): "the request cannot be sent: \(detail)"
        case .machine(let detail): detail
        }
    }
}
