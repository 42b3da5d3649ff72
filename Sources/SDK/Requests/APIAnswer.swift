import CountersignTransport

/// An answer whose body is read as it comes.
public struct APIAnswer: Sendable {
    /// Its head.
    public let response: APIResponse
    /// Its body, for one reader.
    public let body: APIBytes

    /// From its parts.
    public init(_ response: APIResponse, _ body: APIBytes) {
        self.response = response
        self.body = body
    }

    /// One that is whole: for interceptors that answer themselves.
    public init(status: Int, fields: [HeaderField] = [], body: [UInt8] = []) {
        self.init(
            APIResponse(status: status, fields: fields, length: .bytes(Int64(body.count))), APIBytes(whole: body))
    }
}

/// A body's pieces in their order, for one reader. A server waits for one who is slow; letting go of it ends the transfer.
public struct APIBytes: AsyncSequence, Sendable {
    /// A piece, which is not empty.
    public typealias Element = [UInt8]
    /// A body that does not come whole ends in one.
    public typealias Failure = CountersignError

    enum Source: Sendable {
        case whole([UInt8])
        /// What was read ahead, and what follows.
        case streamed(after: [UInt8], ResponseBody)
        /// What has to turn out to be what was signed.
        case checked(CheckedBody)
    }

    let source: Source

    init(source: Source) { self.source = source }

    init(whole bytes: [UInt8]) { source = .whole(bytes) }

    init(after start: [UInt8], _ body: ResponseBody) { source = .streamed(after: start, body) }

    /// The one iterator.
    public func makeAsyncIterator() -> Iterator { Iterator(source) }

    /// Waits for piece after piece.
    public struct Iterator: AsyncIteratorProtocol {
        private var rest: [UInt8]
        private var pieces: ResponseBody.Iterator?
        private var checked: CheckedBody?

        init(_ source: Source) {
            switch source {
            case .whole(let bytes): rest = bytes
            case .streamed(let start, let body):
                rest = start
                pieces = body.makeAsyncIterator()
            case .checked(let body):
                rest = []
                checked = body
            }
        }

        /// The next piece; nil at the end of a body that came whole.
        public mutating func next() async throws(CountersignError) -> [UInt8]? { try await next(isolation: #isolation) }

        /// The same on the caller's actor.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(CountersignError) -> [UInt8]? {
            guard rest.isEmpty else {
                defer { rest = [] }
                return rest
            }
            if let checked { return try await checked.next() }
            do throws(TransportError) {
                return try await pieces?.next(isolation: actor)
            } catch {
                throw CountersignError(error)
            }
        }
    }

    /// All of it, where it has no more than `limit` bytes.
    public func collect(upTo limit: Int) async throws(CountersignError) -> [UInt8] {
        var bytes: [UInt8] = []
        var pieces = makeAsyncIterator()
        while let piece = try await pieces.next() {
            // Nobody reads on: to let go of the body ends the transfer.
            guard bytes.count + piece.count <= limit else { throw .answerTooLarge(limit: limit) }
            bytes += piece
        }
        return bytes
    }
}
