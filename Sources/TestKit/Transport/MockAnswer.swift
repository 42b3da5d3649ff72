import CountersignTransport

/// What a ``MockTransport`` answers with.
public struct MockAnswer: Sendable {
    /// How the body ends.
    public enum Ending: Sendable {
        /// As a body that came whole.
        case whole
        /// It breaks off after what is there.
        case brokenOff(TransportError.Cause)
    }

    /// 200 to 599.
    public var status: Int
    /// In their order.
    public var fields: [HeaderField]
    /// The body, piece by piece; empty ones are left out.
    public var pieces: [[UInt8]]
    /// Whole, unless told otherwise.
    public var ending = Ending.whole
    /// How long the head is waited for, on the transport's ``ManualClock``.
    public var delay = Duration.zero

    /// An answer whose body comes at one go.
    public init(_ status: Int = 200, fields: [HeaderField] = [], body: [UInt8] = []) {
        self.status = status
        self.fields = fields
        pieces = [body]
    }

    /// The same with a text.
    public init(_ status: Int = 200, fields: [HeaderField] = [], text: String) {
        self.init(status, fields: fields, body: Array(text.utf8))
    }

    /// The same answer, later.
    public func after(_ delay: Duration) -> MockAnswer {
        var answer = self
        answer.delay = delay
        return answer
    }

    /// The same answer, of which no more than is there ever comes.
    public func breakingOff(_ cause: TransportError.Cause = .connectionLost("scripted")) -> MockAnswer {
        var answer = self
        answer.ending = .brokenOff(cause)
        return answer
    }
}

/// What a ``MockTransport`` does with one request.
public enum MockStep: Sendable {
    /// The request arrives, and this comes back.
    case answer(MockAnswer)
    /// It does not work. Where its fate is `notSent`, nothing of the request was read; otherwise it arrived.
    case fail(TransportError)
    /// The request arrives, and this says what comes back.
    case perform(@Sendable (SeenRequest) async throws(TransportError) -> MockAnswer)
}

/// A request as a ``MockTransport`` received it.
public struct SeenRequest: Sendable {
    /// In the case in which it was sent.
    public let method: String
    /// Whom it went to.
    public let origin: Origin
    /// Path and query, percent-encoded.
    public let target: String
    /// All but those that follow from the rest.
    public let fields: [HeaderField]
    /// All of it, streamed or not.
    public let body: [UInt8]

    /// The first field of that name, compared without case.
    public func value(of name: String) -> String? {
        fields.first { $0.name.lowercased() == name.lowercased() }.map { String(decoding: $0.value, as: UTF8.self) }
    }

    /// Origin and target.
    public var url: String { "\(origin)\(target)" }
}
