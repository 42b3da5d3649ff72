/// An answer: its head, and its body as it comes.
public struct IncomingResponse: Sendable {
    /// 200 to 599; interim answers are passed over.
    public let status: Int
    /// As they came, in their order.
    public let fields: [HeaderField]
    /// Read it to its end, or let go of it: until then it takes one of the places for requests.
    public let body: ResponseBody

    /// From its parts, as transports make it.
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
    /// A body that does not come whole ends in one.
    public typealias Failure = TransportError

    let source: any BodySource

    /// From where its pieces come.
    public init(_ source: any BodySource) { self.source = source }

    /// The one iterator: a second one shares what is left.
    public func makeAsyncIterator() -> Iterator { Iterator(source: source) }

    /// Waits for piece after piece.
    public struct Iterator: AsyncIteratorProtocol {
        let source: any BodySource

        /// The next piece, which is not empty; nil at the end of a body that came whole.
        public mutating func next() async throws(TransportError) -> [UInt8]? { try await source.next() }

        /// The same on the caller's actor.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(TransportError) -> [UInt8]? { try await source.next() }
    }

    /// All of it, where it has no more than `limit` bytes.
    public func collect(upTo limit: Int) async throws(TransportError) -> [UInt8] {
        var body: [UInt8] = []
        while let piece = try await source.next() {
            guard body.count + piece.count <= limit else {
                source.cancel()
                throw TransportError(.answerTooLarge(limit: limit), fate: .brokenOff)
            }
            body += piece
        }
        return body
    }
}

/// Where an answer's body comes from: a transport's side of it.
public protocol BodySource: AnyObject, Sendable {
    /// The next piece, which is not empty; nil at the end of a body that came whole. One call at a time.
    func next() async throws(TransportError) -> [UInt8]?

    /// The reader has stopped reading. Called by the reader; releasing the source has the same effect.
    func cancel()
}
