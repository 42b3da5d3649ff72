import CountersignMemory
import CountersignSchemes
import CountersignTransport

/// The head of a response, and whether it is authenticated.
public struct APIResponse: Sendable, Hashable {
    /// What authenticates a response.
    public enum Signer: Sendable, Hashable {
        /// The authority signed it with the session's key for this very request.
        case session
        /// The authority signed it with its own key for this very request.
        case authority
        /// No signature: a backend's responses pass through unsigned, and only TLS protects them.
        case nobody
    }

    /// 200 to 599.
    public let status: Int
    /// The fields as they came, in order.
    public let fields: [HeaderField]
    /// The body's length in bytes as far as it is known: announced, or counted.
    public let length: TransferProgress.Total
    /// What authenticates the response.
    public let signer: Signer

    /// From its parts: for interceptors that answer themselves, and for tests.
    public init(
        status: Int, fields: [HeaderField] = [], length: TransferProgress.Total = .unknown,
        signer: Signer = .nobody
    ) {
        self.status = status
        self.fields = fields
        self.length = length
        self.signer = signer
    }

    /// Whether the authority is known to have given this response, now and to this request.
    public var isGenuine: Bool { signer != .nobody }

    /// Whether it is a success: 200 to 299. A status of 400 and above is the backend's own; the client throws
    /// refusals of the authority as a ``CountersignError``.
    public var isSuccess: Bool { (200...299).contains(status) }

    /// The first field of that name, compared without case, where its value is UTF-8.
    public func value(of name: String) -> String? { fields.text(of: name) }
}

/// A response whose body is read as a stream.
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

    /// A response with a complete body: for interceptors that answer themselves.
    public init(status: Int, fields: [HeaderField] = [], body: [UInt8] = []) {
        self.init(
            APIResponse(status: status, fields: fields, length: .bytes(Int64(body.count))),
            APIBytes(whole: body))
    }
}

/// A body's pieces in order, for one reader. The server waits for a slow reader; releasing the sequence ends
/// the transfer.
public struct APIBytes: AsyncSequence, Sendable {
    /// A piece, which is not empty.
    public typealias Element = [UInt8]
    /// Thrown if the body does not come whole.
    public typealias Failure = CountersignError

    enum Source: Sendable {
        case whole([UInt8])
        /// The bytes read ahead, and the rest.
        case streamed(after: [UInt8], ResponseBody)
        /// A body that must match the signed digest.
        case checked(CheckedBody)
    }

    let source: Source

    init(source: Source) { self.source = source }

    init(whole bytes: [UInt8]) { source = .whole(bytes) }

    init(after start: [UInt8], body: ResponseBody) { source = .streamed(after: start, body) }

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
        public mutating func next() async throws(CountersignError) -> [UInt8]? {
            try await next(isolation: #isolation)
        }

        /// The same on the caller's actor.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(CountersignError)
            -> [UInt8]?
        {
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

    /// The whole body, if it has no more than `limit` bytes.
    public func collect(upTo limit: Int) async throws(CountersignError) -> [UInt8] {
        if case .whole(let bytes) = source {
            guard bytes.count <= limit else { throw .answerTooLarge(limit: limit) }
            return bytes
        }
        var bytes: [UInt8] = []
        var pieces = makeAsyncIterator()
        while let piece = try await pieces.next() {
            // Releasing the body ends the transfer.
            guard bytes.count + piece.count <= limit else { throw .answerTooLarge(limit: limit) }
            bytes += piece
        }
        return bytes
    }
}

/// A body that streams, and must match the digest in its signed head. The last piece is held back until the
/// digest matches: a reader that reaches the end without an error has read what was signed.
///
/// Safe to share: a body has one reader, which asks for one piece after the other.
final class CheckedBody: @unchecked Sendable {
    private var pieces: APIBytes.Iterator
    /// Nil once the end was reached.
    private var digest: BodyDigest?
    private var held: [UInt8]?

    init(_ body: APIBytes, expectation: BodyExpectation) {
        pieces = body.makeAsyncIterator()
        digest = BodyDigest(expectation)
    }

    func next() async throws(CountersignError) -> [UInt8]? {
        while digest != nil {
            guard let piece = try await pieces.next() else {
                try finish()
                break
            }
            digest?.update(piece.span)
            let before = held
            held = piece
            if let before { return before }
        }
        defer { held = nil }
        return held
    }

    private func finish() throws(CountersignError) {
        guard let digest = digest.take() else { return }
        do {
            try digest.finish()
        } catch {
            held = nil
            throw .notGenuine("the body is not the one that was signed")
        }
    }
}

extension APIBytes {
    /// The same body, checked against the signed digest.
    func checked(_ expectation: BodyExpectation) -> APIBytes {
        APIBytes(source: .checked(CheckedBody(self, expectation: expectation)))
    }
}
