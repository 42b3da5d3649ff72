import CountersignTrust

/// Why there is no complete response, and what became of the request.
public struct TransportError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What became of the request.
    public enum Fate: Sendable, Hashable {
        /// No byte of it was sent: it may be sent again.
        case notSent
        /// The server may have received it and may have acted on it.
        case outcomeUnknown
        /// The server received it: a response began and broke off.
        case brokenOff
    }

    /// The phase that timed out.
    public enum Phase: Sendable, Hashable {
        /// Name resolution, TCP and TLS.
        case connecting
        /// No byte was sent or received.
        case idle
        /// The whole request, with the wait for a free connection.
        case total
    }

    /// What happened.
    public enum Cause: Sendable, Hashable {
        /// The machine has no network connection.
        case offline
        /// The host name has no address.
        case hostNotFound
        /// No process listens at that port.
        case connectionRefused
        /// A limit of ``TransportOptions`` was reached.
        case timedOut(Phase)
        /// The trust does not accept the server.
        case untrusted(Trust.Verdict)
        /// The TLS handshake failed, for another reason than trust.
        case tls(String)
        /// The connection was lost or could not be made, for another reason.
        case connectionLost(String)
        /// The response is not valid HTTP.
        case malformedAnswer(String)
        /// The response has more bytes than the reader accepts.
        case answerTooLarge(limit: Int)
        /// The caller's task was cancelled, or the caller released the response.
        case cancelled
        /// Another trust has replaced the one under which the connection was made.
        case trustReplaced
        /// The stream of the request's body threw, or had another length than announced.
        case body(String)
        /// The request's body can be sent only once, and was sent before.
        case bodyUsedUp
        /// No further copy is sent, because the server may have forgotten the request's idempotency key and
        /// could execute it again.
        case keyExpired
        /// The request cannot be sent as it is.
        case malformedRequest(String)
        /// The machine or a library failed.
        case machine(String)
    }

    /// What happened.
    public let cause: Cause
    /// What became of the request.
    public let fate: Fate

    /// For other transports, such as test doubles.
    public init(_ cause: Cause, fate: Fate) {
        self.cause = cause
        self.fate = fate
    }

    /// One line for people.
    public var description: String {
        switch fate {
        case .notSent: "\(cause); nothing was sent"
        case .outcomeUnknown: "\(cause); whether the server received the request is not known"
        case .brokenOff: "\(cause); the response broke off"
        }
    }
}

extension TransportError.Cause: CustomStringConvertible {
    /// A few words for people.
    public var description: String {
        switch self {
        case .offline: "the machine is offline"
        case .hostNotFound: "the host name has no address"
        case .connectionRefused: "no process listens at that port"
        case .timedOut(.connecting): "no connection was made within the time limit"
        case .timedOut(.idle): "no byte was sent or received within the time limit"
        case .timedOut(.total): "the request took longer than its time limit"
        case .untrusted(let verdict): "the server is not trusted (\(verdict))"
        case .tls(let detail): "the TLS handshake failed (\(detail))"
        case .connectionLost(let detail): "the connection was lost (\(detail))"
        case .malformedAnswer(let detail): "the response is not valid HTTP (\(detail))"
        case .answerTooLarge(let limit): "the response has more than \(limit) bytes"
        case .cancelled: "the request was cancelled"
        case .trustReplaced: "the pins were replaced, which closed the connection"
        case .body(let detail): "the request's body: \(detail)"
        case .bodyUsedUp: "the request's body can be sent only once, and was sent before"
        case .keyExpired: "the server may have forgotten the request's idempotency key"
        case .malformedRequest(let detail): "the request cannot be sent: \(detail)"
        case .machine(let detail): detail
        }
    }
}
