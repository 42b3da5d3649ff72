/// A response: its head, and its body as it arrives.
public struct IncomingResponse: Sendable {
    /// 200 to 599; interim responses are skipped.
    public let status: Int
    /// The fields as received, in their order.
    public let fields: [HeaderField]
    /// Read it to its end or release it: until then it counts as one of the simultaneous requests.
    public let body: ResponseBody

    /// For transports, which create responses.
    public init(status: Int, fields: [HeaderField], body: ResponseBody) {
        self.status = status
        self.fields = fields
        self.body = body
    }

    /// The first field of that name, compared without case.
    public func value(of name: String) -> [UInt8]? {
        fields.first { $0.isNamed(name) }?.value
    }
}

/// The pieces of a body in order, for one reader. At most a few hundred kilobytes are buffered for a slow
/// reader; then the server waits.
public struct ResponseBody: AsyncSequence, Sendable {
    /// A piece of the body.
    public typealias Element = [UInt8]
    /// An incomplete body ends with this error.
    public typealias Failure = TransportError

    let source: any BodySource
    /// The source, if it may have the whole body at once.
    private let wholeSource: (any WholeBodySource)?

    /// A body with the given source.
    public init(_ source: any BodySource) {
        self.source = source
        wholeSource = nil
    }

    init(whole source: any WholeBodySource) { (self.source, wholeSource) = (source, source) }

    /// The body has one position: a second iterator continues where the first stopped.
    public func makeAsyncIterator() -> Iterator { Iterator(source: source) }

    /// Returns the pieces in order.
    public struct Iterator: AsyncIteratorProtocol {
        let source: any BodySource

        /// The next piece, which is not empty; nil at the end of a complete body.
        public mutating func next() async throws(TransportError) -> [UInt8]? { try await source.next() }

        /// The same on the caller's actor.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(TransportError) -> [UInt8]? { try await source.next() }
    }

    /// The whole body, if it has at most `limit` bytes.
    public func collect(upTo limit: Int) async throws(TransportError) -> [UInt8] {
        if let whole = wholeSource?.takeWhole(upTo: limit) { return whole }
        var body: [UInt8] = []
        while let piece = try await source.next() {
            guard body.count + piece.count <= limit else {
                source.cancel()
                throw TransportError(.answerTooLarge(limit: limit), fate: .brokenOff)
            }
            if body.isEmpty { body = piece } else { body += piece }
        }
        return body
    }
}

/// The source of a response's body, which a transport implements.
public protocol BodySource: AnyObject, Sendable {
    /// The next piece, which is not empty; nil at the end of a complete body. Called once at a time.
    func next() async throws(TransportError) -> [UInt8]?

    /// The reader has stopped reading. Called by the reader; releasing the source has the same effect.
    func cancel()
}

/// A source that knows when it has received all that is left of a body.
protocol WholeBodySource: BodySource {
    /// All that is left of a complete body, if it is here and has at most `limit` bytes; nil if it is not.
    /// Then nothing is taken.
    func takeWhole(upTo limit: Int) -> [UInt8]?
}
