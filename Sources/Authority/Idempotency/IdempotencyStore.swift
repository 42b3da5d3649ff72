import CountersignSeal
import CountersignWire

/// The stored outcomes of requests with an `Idempotency-Key`, so that a repeated request is answered and
/// not executed again.
package protocol IdempotencyStore: Sendable {
    /// Durably marks the request as begun, unless its key exists or there is no room for it; a request
    /// whose key exists is answered even without room. If a holder of few keys finds no room, old requests
    /// of the holder with the most are deleted (``IdempotencyBounds/displaceable(at:)``).
    func begin(_ request: IdempotentRequest, within bounds: IdempotencyBounds) throws(OperationalError)
        -> IdempotencyState
    /// Stores the answer of a request that was begun.
    func finish(_ request: IdempotentRequest, with answer: StoredAnswer) throws(OperationalError)
    /// Forgets a request that did not reach the backend: it may be begun again.
    func abandon(_ request: IdempotentRequest) throws(OperationalError)
    /// Deletes at most `limit` requests that began before that time; returns their number.
    func forgetRequests(before time: Int64, limit: Int) throws(OperationalError) -> Int
}

package struct IdempotentRequest: Sendable, Equatable {
    package var scope: IdempotencyScope
    /// The party that the key counts for: its account, or the caller's network.
    package var holder: IdempotencyHolder
    /// SHA-256 of the `Idempotency-Key`.
    package var key: [UInt8]
    /// SHA-256 of method, target and everything else that identifies the request.
    package var digest: [UInt8]
    /// Whole Unix seconds.
    package var begun: Int64

    /// `address` is the address of a caller without a session.
    package init(
        scope: IdempotencyScope, from address: ClientAddress = .unknown, key: [UInt8], digest: [UInt8],
        begun: Int64
    ) {
        self.scope = scope
        holder = IdempotencyHolder(of: scope, from: address)
        self.key = key
        self.digest = digest
        self.begun = begun
    }
}

package enum IdempotencyState: Sendable, Equatable {
    /// The request is new: the caller is to execute it.
    case begun
    /// The request was begun before; its outcome is not known.
    case unfinished
    case finished(StoredAnswer)
    /// The key was used for another request.
    case otherRequest
    /// The bound of the scope, the holder or all together is reached.
    case full
}

/// An answer of the backend, stored to be repeated.
package struct StoredAnswer: Sendable, Equatable {
    package var status: Int
    /// Names in lower case, as the backend sent them.
    package var fields: [Field]
    package var body: [UInt8]

    package struct Field: Sendable, Equatable {
        package var name: String
        package var value: [UInt8]

        package init(name: String, value: [UInt8]) {
            self.name = name
            self.value = value
        }
    }

    package init(status: Int, fields: [Field], body: [UInt8]) {
        self.status = status
        self.fields = fields
        self.body = body
    }
}

/// The answer to a request with an `Idempotency-Key`, as it is repeated.
package enum IdempotentAnswer: Sendable, Equatable {
    case whole(status: Int, fields: [StoredAnswer.Field], body: [UInt8])
    /// The answer was too long to be stored; only its status is known.
    case tooLong(status: Int)
}

extension Deployment {
    /// Seals an answer's fields and body, bound to the request, because the answer may contain what only
    /// its caller is to see.
    package func sealed(_ answer: IdempotentAnswer, to request: IdempotentRequest) -> StoredAnswer {
        switch answer {
        case .tooLong(let status): return StoredAnswer(status: status, fields: [], body: [])
        case .whole(let status, let fields, let body):
            let text = AnswerEncoding.encode(fields: fields, body: body)
            let sealed = seal(Secret(copying: text.span), as: .idempotentAnswer(to: request))
            return StoredAnswer(status: status, fields: [], body: sealed)
        }
    }

    /// Opens what ``sealed(_:to:)`` sealed; `digest` and `begun` of the request are not used.
    package func opened(_ stored: StoredAnswer, to request: IdempotentRequest) throws(OperationalError)
        -> IdempotentAnswer
    {
        if stored.body.isEmpty { return .tooLong(status: stored.status) }
        guard let text = open(stored.body, as: .idempotentAnswer(to: request)),
            let (fields, body) = text.withExposedBytes({ AnswerEncoding.decode($0) })
        else {
            throw OperationalError(
                .failed,
                message:
                    "idempotent request of \(request.scope): its answer does not open; the row was altered")
        }
        return .whole(status: stored.status, fields: fields, body: body)
    }
}

/// `count ‖ (length ‖ name ‖ length ‖ value)… ‖ body`; counts and lengths are 4 bytes, big-endian.
private enum AnswerEncoding {
    static func encode(fields: [StoredAnswer.Field], body: [UInt8]) -> [UInt8] {
        var bytes = number(fields.count)
        for field in fields {
            for part in [Array(field.name.utf8), field.value] { bytes += number(part.count) + part }
        }
        return bytes + body
    }

    /// Nil if it is not what ``encode(fields:body:)`` writes.
    static func decode(_ bytes: Span<UInt8>) -> (fields: [StoredAnswer.Field], body: [UInt8])? {
        var place = 0
        guard let count = number(in: bytes, at: &place) else { return nil }
        var fields: [StoredAnswer.Field] = []
        for _ in 0..<count {
            guard let name = part(of: bytes, at: &place), let value = part(of: bytes, at: &place) else {
                return nil
            }
            fields.append(StoredAnswer.Field(name: String(decoding: name, as: UTF8.self), value: value))
        }
        return (fields, bytes.extracting(place...).withUnsafeBufferPointer { Array($0) })
    }

    private static func number(_ count: Int) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: count >> (24 - 8 * $0)) }
    }

    private static func number(in bytes: Span<UInt8>, at place: inout Int) -> Int? {
        guard bytes.count - place >= 4 else { return nil }
        defer { place += 4 }
        return (0..<4).reduce(0) { $0 << 8 | Int(bytes[place + $1]) }
    }

    private static func part(of bytes: Span<UInt8>, at place: inout Int) -> [UInt8]? {
        guard let count = number(in: bytes, at: &place), bytes.count - place >= count else { return nil }
        defer { place += count }
        return bytes.extracting(place..<place + count).withUnsafeBufferPointer { Array($0) }
    }
}

extension SealBinding {
    fileprivate static func idempotentAnswer(to request: IdempotentRequest) -> SealBinding {
        idempotentAnswer(scope: "\(request.scope)", key: request.key)
    }

    static func idempotentAnswer(scope: String, key: [UInt8]) -> SealBinding {
        SealBinding(kind: "idempotent-answer", row: "\(scope) \(Hex.encode(key.span))")
    }
}
