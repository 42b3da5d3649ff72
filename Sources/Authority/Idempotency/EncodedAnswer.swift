import CountersignSchemes
import CountersignSeal
import CountersignWire

/// The answer to a request with an `Idempotency-Key`, as it is repeated.
package enum IdempotentAnswer: Sendable, Equatable {
    case whole(status: Int, fields: [StoredAnswer.Field], body: [UInt8])
    /// The answer was too long to be stored, or there was no room for it; only its status is known.
    case tooLong(status: Int)
}

extension Deployment {
    /// Seals an answer's fields and body, bound to the request, because the answer may contain what only
    /// its caller is to see.
    package func sealed(_ answer: EncodedAnswer, to request: IdempotentRequest) -> StoredAnswer {
        guard !answer.text.isEmpty else { return StoredAnswer(status: answer.status, fields: [], body: []) }
        let sealed = seal(Secret(copying: answer.text.span), as: .idempotentAnswer(to: request))
        return StoredAnswer(status: answer.status, fields: [], body: sealed)
    }

    /// Opens what ``sealed(_:to:)`` sealed; `digest` and `begun` of the request are not used.
    package func opened(_ stored: StoredAnswer, to request: IdempotentRequest) throws(OperationalError)
        -> IdempotentAnswer
    {
        if stored.body.isEmpty { return .tooLong(status: stored.status) }
        guard let text = open(stored.body, as: .idempotentAnswer(to: request)),
            let (fields, body) = text.withExposedBytes({ EncodedAnswer.decode($0) })
        else {
            throw OperationalError(
                .failed,
                message:
                    "idempotent request of \(request.scope): its answer does not open; the row was altered")
        }
        return .whole(status: stored.status, fields: fields, body: body)
    }
}

/// An answer as it is sealed, written while it arrives:
/// `count ‖ (length ‖ name ‖ length ‖ value)… ‖ body`. Counts and lengths are 4 bytes, big-endian.
package struct EncodedAnswer: Sendable, Equatable {
    package let status: Int
    /// Empty for an answer that is too long to be kept.
    fileprivate var text: [UInt8]
    private var fields = 0

    /// An answer that has no field and no body yet.
    package init(status: Int) {
        self.status = status
        text = [0, 0, 0, 0]
    }

    package init(tooLongWithStatus status: Int) {
        self.status = status
        text = []
    }

    package init(_ answer: IdempotentAnswer) {
        switch answer {
        case .tooLong(let status): self.init(tooLongWithStatus: status)
        case .whole(let status, let fields, let body):
            self.init(status: status)
            for field in fields { append(name: Array(field.name.utf8).span, value: field.value.span) }
            append(body: body.span)
        }
    }

    /// Only before the body's first part.
    package mutating func append(name: Span<UInt8>, value: Span<UInt8>) {
        fields += 1
        let count = UInt32(truncatingIfNeeded: fields).bigEndian
        text.withUnsafeMutableBytes { $0.storeBytes(of: count, as: UInt32.self) }
        let bytes = 8 + name.count + value.count
        withUnsafeTemporaryAllocation(byteCount: bytes, alignment: 1) { space in
            let middle = 4 + name.count
            EncodedAnswer.write(name, to: UnsafeMutableRawBufferPointer(rebasing: space[..<middle]))
            EncodedAnswer.write(value, to: UnsafeMutableRawBufferPointer(rebasing: space[middle...]))
            text.append(contentsOf: UnsafeRawBufferPointer(space))
        }
    }

    private static func write(_ part: Span<UInt8>, to space: UnsafeMutableRawBufferPointer) {
        space.storeBytes(of: UInt32(truncatingIfNeeded: part.count).bigEndian, as: UInt32.self)
        part.withUnsafeBytes { UnsafeMutableRawBufferPointer(rebasing: space[4...]).copyMemory(from: $0) }
    }

    package mutating func append(body: Span<UInt8>) {
        body.withUnsafeBytes { text.append(contentsOf: $0) }
    }

    package mutating func reserve(_ bytes: Int) { text.reserveCapacity(bytes) }

    package var answer: IdempotentAnswer {
        guard let (fields, body) = EncodedAnswer.decode(text.span) else { return .tooLong(status: status) }
        return .whole(status: status, fields: fields, body: body)
    }

    /// Nil if it is not what this type writes.
    fileprivate static func decode(_ bytes: Span<UInt8>) -> (fields: [StoredAnswer.Field], body: [UInt8])? {
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
        SealBinding(kind: "idempotent-answer", row: request.row)
    }

    static func idempotentAnswer(scope: String, key: [UInt8]) -> SealBinding {
        SealBinding(kind: "idempotent-answer", row: "\(scope) \(Hex.encode(key.span))")
    }
}

extension IdempotentRequest {
    /// The scope's description and the key in hexadecimal digits, made in one piece.
    var row: String {
        guard case .release(let id) = scope else { return "\(scope) \(Hex.encode(key.span))" }
        let (word, digits): (StaticString, StaticString) = ("release ", "0123456789abcdef")
        let (wordBytes, idBytes) = (word.utf8CodeUnitCount, id.bytes.count)
        let count = wordBytes + idBytes + 1 + 2 * key.count
        return String(unsafeUninitializedCapacity: count) { text in
            guard var place = text.baseAddress else { return 0 }
            place.initialize(from: word.utf8Start, count: wordBytes)
            place += wordBytes
            id.bytes.withUnsafeBufferPointer { id in
                if let first = id.baseAddress { place.initialize(from: first, count: id.count) }
            }
            place += idBytes
            place.initialize(to: UInt8(ascii: " "))
            place += 1
            for byte in key {
                place.initialize(to: digits.utf8Start[Int(byte >> 4)])
                (place + 1).initialize(to: digits.utf8Start[Int(byte & 15)])
                place += 2
            }
            return count
        }
    }
}
