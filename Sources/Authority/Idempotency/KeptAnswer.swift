import CountersignSeal
import CountersignWire

/// The answer to a request with an `Idempotency-Key`, as it is given again.
package enum KeptAnswer: Sendable, Equatable {
    case whole(status: Int, fields: [StoredAnswer.Field], body: [UInt8])
    /// It was too long to be kept; that it came, and how, is known.
    case long(status: Int)
}

extension Deployment {
    /// An answer may hold what only its caller is to see, so a store gets its fields and body sealed, bound to their request.
    package func sealed(_ answer: KeptAnswer, to request: IdempotentRequest) -> StoredAnswer {
        switch answer {
        case .long(let status): return StoredAnswer(status: status, fields: [], body: [])
        case .whole(let status, let fields, let body):
            let text = KeptContent.encode(fields, body)
            let sealed = seal(Secret(copying: text.span), as: .idempotentAnswer(to: request))
            return StoredAnswer(status: status, fields: [], body: sealed)
        }
    }

    /// What ``sealed(_:to:)`` has sealed; `digest` and `begun` of the request are not looked at.
    package func opened(_ stored: StoredAnswer, to request: IdempotentRequest) throws(Fault) -> KeptAnswer {
        if stored.body.isEmpty { return .long(status: stored.status) }
        guard let text = open(stored.body, as: .idempotentAnswer(to: request)),
            let (fields, body) = text.withExposedBytes({ KeptContent.decode($0) })
        else {
            throw Fault(
                .failed, "idempotent request of \(request.scope): its answer does not open; the row was altered")
        }
        return .whole(status: stored.status, fields: fields, body: body)
    }
}

/// `count ‖ (length ‖ name ‖ length ‖ value)… ‖ body`; counts and lengths are 4 bytes, big-endian.
private enum KeptContent {
    static func encode(_ fields: [StoredAnswer.Field], _ body: [UInt8]) -> [UInt8] {
        var bytes = number(fields.count)
        for field in fields {
            for part in [Array(field.name.utf8), field.value] { bytes += number(part.count) + part }
        }
        return bytes + body
    }

    /// Nil where it is not what ``encode(_:_:)`` writes.
    static func decode(_ bytes: Span<UInt8>) -> (fields: [StoredAnswer.Field], body: [UInt8])? {
        var place = 0
        guard let count = number(in: bytes, &place) else { return nil }
        var fields: [StoredAnswer.Field] = []
        for _ in 0..<count {
            guard let name = part(of: bytes, &place), let value = part(of: bytes, &place) else { return nil }
            fields.append(StoredAnswer.Field(name: String(decoding: name, as: UTF8.self), value: value))
        }
        return (fields, bytes.extracting(place...).withUnsafeBufferPointer { Array($0) })
    }

    private static func number(_ count: Int) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: count >> (24 - 8 * $0)) }
    }

    private static func number(in bytes: Span<UInt8>, _ place: inout Int) -> Int? {
        guard bytes.count - place >= 4 else { return nil }
        defer { place += 4 }
        return (0..<4).reduce(0) { $0 << 8 | Int(bytes[place + $1]) }
    }

    private static func part(of bytes: Span<UInt8>, _ place: inout Int) -> [UInt8]? {
        guard let count = number(in: bytes, &place), bytes.count - place >= count else { return nil }
        defer { place += count }
        return bytes.extracting(place..<place + count).withUnsafeBufferPointer { Array($0) }
    }
}

extension SealBinding {
    fileprivate static func idempotentAnswer(to request: IdempotentRequest) -> SealBinding {
        SealBinding(kind: "idempotent-answer", row: "\(request.scope) \(Hex.encode(request.key.span))")
    }
}
