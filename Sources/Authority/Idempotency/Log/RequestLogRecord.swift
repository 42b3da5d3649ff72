import CountersignSchemes
import CountersignSeal
import CountersignWire

/// The keys of a log of keyed requests, derived from the key of the audit log, which is random for each
/// store: no record of another deployment is valid here, and a new master key needs no new records.
package struct RequestLogKeys: Sendable {
    /// Of the names that requests have in memory: a caller that chooses an `Idempotency-Key` cannot choose
    /// its name.
    let names: KeyedHash
    /// Of the records' MACs.
    let records: KeyedHash

    package init(_ key: Secret) {
        func part(_ purpose: String) -> KeyedHash {
            let part = HKDFSHA512.expand(
                key, info: Array("countersign/1 request log \(purpose)".utf8), count: 16)
            return part.withExposedBytes { bytes in KeyedHash(key: KeyedHash.Key { bytes[$0] }) }
        }
        names = part("names")
        records = part("records")
    }

    func name(of request: IdempotentRequest) -> RequestName {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(112)
        bytes.append(scope: request.scope)
        bytes.append(contentsOf: request.key)
        return RequestName(names.hash(bytes.span))
    }

    /// What is compared in place of a request's whole digest. Keyed, because half of a digest could be found
    /// again.
    func digest(of request: IdempotentRequest) -> RequestName { RequestName(names.hash(request.digest.span)) }
}

/// A keyed hash of a scope and a key, by which a log's records and its index name a request.
struct RequestName: Sendable, Hashable {
    var low: UInt64
    var high: UInt64

    init(_ hash: (low: UInt64, high: UInt64)) { (low, high) = hash }

    init(low: UInt64, high: UInt64) { (self.low, self.high) = (low, high) }
}

/// One entry of the log. Integers are little-endian:
///
/// ```
/// offset (4) ‖ bytes of the body (4) ‖ durable (4) ‖ bytes of the content (2) ‖ kind (1) ‖ 0 (1)
///     ‖ content ‖ MAC (16) ‖ body
/// ```
///
/// `offset` is the record's own place in its segment. `durable` is a place up to which the writer had seen
/// the segment reach the disk: damage before it is none that a crash leaves behind. The MAC covers all
/// before it, under a key of the segment. The body is a stored answer. Its hash is in the content; it is
/// compared only with what the disk had not confirmed, because the seal authenticates the answer.
struct RequestLogRecord: Equatable {
    enum Content: Equatable {
        /// The request is to be forwarded: its result is unknown from here on.
        case begun(IdempotentRequest)
        /// Its answer is the body. `slot` is the answer's first sealed byte; 0 where the answer is not kept.
        case finished(RequestName, begun: Int64, status: Int32, slot: UInt8, body: BodyHash)
        /// The request did not reach the backend.
        case abandoned(RequestName, begun: Int64)
        /// Finished requests gave way to others.
        case displaced([RequestName])
        /// All that began before a time are forgotten.
        case forgotten(before: Int64)
        case erased(account: Int64)
        /// From here on only answers with this first sealed byte are kept.
        case slot(UInt8)
        /// The segment ends; the next one follows.
        case continued
    }

    /// A keyed hash of a body, under the key of its segment: by it a body is known that a crash has torn.
    struct BodyHash: Equatable {
        var low: UInt64
        var high: UInt64

        init(_ body: Span<UInt8>, key: KeyedHash) { (low, high) = key.hash(body) }

        fileprivate init(low: UInt64, high: UInt64) { (self.low, self.high) = (low, high) }
    }

    static let headBytes = 16
    static let tagBytes = 16
    /// Names in one ``Content/displaced(_:)``.
    static let mostNames = 64
    /// Bytes of a record without its body.
    static let mostBytes = headBytes + 2 + mostNames * 16 + tagBytes
    /// Bytes of a body: the largest answer that a setting allows, its fields, and the seal.
    static let mostBodyBytes = 4 << 20

    var content: Content
    var durable: Int
    /// Without the body.
    var bytes: Int
    var bodyBytes: Int

    init(content: Content, durable: Int, bytes: Int, bodyBytes: Int) {
        (self.content, self.durable, self.bytes, self.bodyBytes) = (content, durable, bytes, bodyBytes)
    }

    /// The first record of `bytes`, which is at `offset` of a segment with that key; nil if it is not valid,
    /// or not whole but for its body.
    init?(_ bytes: Span<UInt8>, at offset: Int, key: KeyedHash) {
        guard bytes.count >= RequestLogRecord.headBytes, bytes.number(at: 0, bytes: 4) == UInt64(offset),
            bytes[15] == 0
        else { return nil }
        let end = RequestLogRecord.headBytes + Int(bytes.number(at: 12, bytes: 2))
        self.bytes = end + RequestLogRecord.tagBytes
        bodyBytes = Int(bytes.number(at: 4, bytes: 4))
        durable = Int(bytes.number(at: 8, bytes: 4))
        guard self.bytes <= min(RequestLogRecord.mostBytes, bytes.count),
            bodyBytes <= RequestLogRecord.mostBodyBytes
        else { return nil }
        let tag = key.hash(bytes.extracting(0..<end))
        guard tag.low == bytes.number(at: end, bytes: 8), tag.high == bytes.number(at: end + 8, bytes: 8),
            let content = Content(bytes.extracting(RequestLogRecord.headBytes..<end), kind: bytes[14])
        else { return nil }
        self.content = content
    }

    /// Appends a record to what is to be written at `start` of a segment with that key; returns its offset.
    @discardableResult
    static func append(
        _ content: Content, body: [UInt8] = [], to output: inout [UInt8], from start: Int, durable: Int,
        key: KeyedHash
    ) -> Int {
        let first = output.count
        output.append(number: UInt64(start + first), bytes: 4)
        output.append(number: UInt64(body.count), bytes: 4)
        output.append(number: UInt64(durable), bytes: 4)
        output.append(number: 0, bytes: 2)
        output.append(content.kind)
        output.append(0)
        content.append(to: &output)
        let count = output.count - first - headBytes
        output[first + 12] = UInt8(truncatingIfNeeded: count)
        output[first + 13] = UInt8(truncatingIfNeeded: count >> 8)
        let tag = key.hash(output.span.extracting(first..<output.count))
        output.append(number: tag.low, bytes: 8)
        output.append(number: tag.high, bytes: 8)
        output.append(contentsOf: body)
        return start + first
    }
}

extension RequestLogRecord.Content {
    fileprivate var kind: UInt8 {
        switch self {
        case .begun: 1
        case .finished: 2
        case .abandoned: 3
        case .displaced: 4
        case .forgotten: 5
        case .erased: 6
        case .slot: 7
        case .continued: 8
        }
    }

    fileprivate func append(to output: inout [UInt8]) {
        switch self {
        case .begun(let request):
            output.append(number: UInt64(bitPattern: request.begun), bytes: 8)
            output.append(scope: request.scope)
            switch request.holder {
            case .account: output.append(text: [])
            case .network(let bytes): output.append(text: bytes)
            }
            output.append(text: request.key)
            output.append(text: request.digest)
        case .finished(let name, let begun, let status, let slot, let body):
            output.append(name: name)
            output.append(number: UInt64(bitPattern: begun), bytes: 8)
            output.append(number: UInt64(UInt32(bitPattern: status)), bytes: 4)
            output.append(slot)
            output.append(number: body.low, bytes: 8)
            output.append(number: body.high, bytes: 8)
        case .abandoned(let name, let begun):
            output.append(name: name)
            output.append(number: UInt64(bitPattern: begun), bytes: 8)
        case .displaced(let names): for name in names { output.append(name: name) }
        case .forgotten(let time): output.append(number: UInt64(bitPattern: time), bytes: 8)
        case .erased(let account): output.append(number: UInt64(bitPattern: account), bytes: 8)
        case .slot(let slot): output.append(slot)
        case .continued: break
        }
    }

    fileprivate init?(_ bytes: Span<UInt8>, kind: UInt8) {
        var reader = RequestLogReader(bytes)
        switch kind {
        case 1:
            guard let begun = reader.integer(), let scope = reader.scope(), let network = reader.text(),
                let key = reader.text(), let digest = reader.text()
            else { return nil }
            var request = IdempotentRequest(scope: scope, key: key, digest: digest, begun: begun)
            switch scope {
            case .account: guard network.isEmpty else { return nil }
            case .release: request.holder = .network(network)
            }
            self = .begun(request)
        case 2:
            guard let name = reader.name(), let begun = reader.integer(),
                let status = reader.number(bytes: 4),
                let slot = reader.number(bytes: 1), let low = reader.number(bytes: 8),
                let high = reader.number(bytes: 8)
            else { return nil }
            let signed = Int32(bitPattern: UInt32(truncatingIfNeeded: status))
            guard signed >= 0 else { return nil }
            self = .finished(
                name, begun: begun, status: signed, slot: UInt8(truncatingIfNeeded: slot),
                body: RequestLogRecord.BodyHash(low: low, high: high))
        case 3:
            guard let name = reader.name(), let begun = reader.integer() else { return nil }
            self = .abandoned(name, begun: begun)
        case 4:
            var names: [RequestName] = []
            while let name = reader.name() { names.append(name) }
            self = .displaced(names)
        case 5:
            guard let time = reader.integer() else { return nil }
            self = .forgotten(before: time)
        case 6:
            guard let account = reader.integer() else { return nil }
            self = .erased(account: account)
        case 7:
            guard let slot = reader.number(bytes: 1) else { return nil }
            self = .slot(UInt8(truncatingIfNeeded: slot))
        case 8: self = .continued
        default: return nil
        }
        guard reader.isAtEnd else { return nil }
    }
}

/// Reads a record's content; every function returns nil where it does not have enough bytes.
private struct RequestLogReader: ~Escapable {
    private let bytes: Span<UInt8>
    private var place = 0

    @_lifetime(copy bytes)
    init(_ bytes: Span<UInt8>) { self.bytes = bytes }

    var isAtEnd: Bool { place == bytes.count }

    mutating func number(bytes count: Int) -> UInt64? {
        guard bytes.count - place >= count else { return nil }
        defer { place += count }
        return bytes.number(at: place, bytes: count)
    }

    mutating func integer() -> Int64? { number(bytes: 8).map { Int64(bitPattern: $0) } }

    mutating func name() -> RequestName? {
        guard bytes.count - place >= 16, let low = number(bytes: 8), let high = number(bytes: 8) else {
            return nil
        }
        return RequestName(low: low, high: high)
    }

    mutating func text() -> [UInt8]? {
        guard let count = number(bytes: 1).map({ Int($0) }), bytes.count - place >= count else { return nil }
        defer { place += count }
        return bytes.extracting(place..<place + count).withUnsafeBufferPointer { Array($0) }
    }

    mutating func scope() -> IdempotencyScope? {
        switch number(bytes: 1) {
        case 0: return integer().map { .account($0) }
        case 1: return text().flatMap { KeyID($0.span) }.map { .release($0) }
        default: return nil
        }
    }
}

extension Span<UInt8> {
    /// Little-endian.
    func number(at place: Int, bytes count: Int) -> UInt64 {
        var number: UInt64 = 0
        for index in 0..<count { number |= UInt64(self[place + index]) << UInt64(8 * index) }
        return number
    }
}

extension [UInt8] {
    /// Little-endian.
    mutating func append(number: UInt64, bytes count: Int) {
        Swift.withUnsafeBytes(of: number.littleEndian) { append(contentsOf: $0.prefix(count)) }
    }

    fileprivate mutating func append(name: RequestName) {
        append(number: name.low, bytes: 8)
        append(number: name.high, bytes: 8)
    }

    /// At most 255 bytes: keys, digests and networks are shorter.
    fileprivate mutating func append(text: [UInt8]) {
        append(UInt8(Swift.min(text.count, 255)))
        append(contentsOf: text.prefix(255))
    }

    fileprivate mutating func append(scope: IdempotencyScope) {
        switch scope {
        case .account(let number):
            append(0)
            append(number: UInt64(bitPattern: number), bytes: 8)
        case .release(let id):
            append(1)
            append(UInt8(truncatingIfNeeded: id.bytes.count))
            id.bytes.withUnsafeBufferPointer { append(contentsOf: $0) }
        }
    }
}
