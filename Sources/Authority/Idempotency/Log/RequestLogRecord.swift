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
        withUnsafeTemporaryAllocation(
            byteCount: RequestLogWriter.mostScopeBytes + request.key.count, alignment: 1
        ) { space in
            var bytes = RequestLogWriter(space)
            bytes.append(scope: request.scope)
            bytes.append(request.key.span)
            return RequestName(names.hash(bytes.span))
        }
    }

    /// What is compared in place of a request's whole digest. Keyed, because half of a digest could be found
    /// again.
    func digest(of request: IdempotentRequest) -> RequestName { RequestName(names.hash(request.digest.span)) }

    func names(of request: IdempotentRequest) -> RequestNames {
        RequestNames(request: name(of: request), digest: digest(of: request))
    }
}

/// What the log knows a request by.
struct RequestNames {
    var request: RequestName
    /// Of its digest.
    var digest: RequestName
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
        let offset = start + output.count
        let bytes = headBytes + content.bytes + tagBytes
        withUnsafeTemporaryAllocation(byteCount: bytes, alignment: 1) { space in
            write(content, bodyBytes: body.count, at: offset, durable: durable, key: key, into: space)
            output.append(contentsOf: UnsafeRawBufferPointer(space))
        }
        output.append(contentsOf: body)
        return offset
    }

    /// Bytes of a record of the kind ``Content/finished(_:begun:status:slot:body:)``, without its body.
    static let finishedBytes = headBytes + Content.finishedBytes + tagBytes

    /// Writes a record without its body into a space of its length.
    static func write(
        _ content: Content, bodyBytes: Int, at offset: Int, durable: Int, key: KeyedHash,
        into space: UnsafeMutableRawBufferPointer
    ) {
        var record = RequestLogWriter(space)
        record.append(number: UInt32(truncatingIfNeeded: offset))
        record.append(number: UInt32(truncatingIfNeeded: bodyBytes))
        record.append(number: UInt32(truncatingIfNeeded: durable))
        record.append(number: UInt16(truncatingIfNeeded: content.bytes))
        record.append(content.kind)
        record.append(0)
        content.append(to: &record)
        let tag = key.hash(record.span)
        record.append(number: tag.low)
        record.append(number: tag.high)
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

    fileprivate static let finishedBytes = 16 + 8 + 4 + 1 + 16

    /// The number of bytes that ``append(to:)`` writes.
    fileprivate var bytes: Int {
        switch self {
        case .begun(let request):
            let network =
                switch request.holder {
                case .account: 0
                case .network(let bytes): RequestLogWriter.bytes(ofText: bytes)
                }
            return 8 + RequestLogWriter.bytes(of: request.scope) + 3 + network
                + RequestLogWriter.bytes(ofText: request.key) + RequestLogWriter.bytes(ofText: request.digest)
        case .finished: return RequestLogRecord.Content.finishedBytes
        case .abandoned: return 16 + 8
        case .displaced(let names): return 16 * names.count
        case .forgotten, .erased: return 8
        case .slot: return 1
        case .continued: return 0
        }
    }

    fileprivate func append(to output: inout RequestLogWriter) {
        switch self {
        case .begun(let request):
            output.append(number: request.begun)
            output.append(scope: request.scope)
            switch request.holder {
            case .account: output.append(0)
            case .network(let bytes): output.append(text: bytes)
            }
            output.append(text: request.key)
            output.append(text: request.digest)
        case .finished(let name, let begun, let status, let slot, let body):
            output.append(name: name)
            output.append(number: begun)
            output.append(number: status)
            output.append(slot)
            output.append(number: body.low)
            output.append(number: body.high)
        case .abandoned(let name, let begun):
            output.append(name: name)
            output.append(number: begun)
        case .displaced(let names): for name in names { output.append(name: name) }
        case .forgotten(let time): output.append(number: time)
        case .erased(let account): output.append(number: account)
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

/// Writes a record into a space that was made for it.
private struct RequestLogWriter: ~Copyable {
    /// Bytes of the longest scope.
    static let mostScopeBytes = 2 + KeyID.longest

    private let space: UnsafeMutableRawBufferPointer
    private var count = 0

    init(_ space: UnsafeMutableRawBufferPointer) { self.space = space }

    /// What was written.
    var span: Span<UInt8> {
        @_lifetime(borrow self) borrowing get {
            let written = UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(space)[..<count])
            return _overrideLifetime(Span(_unsafeBytes: written), borrowing: self)
        }
    }

    mutating func append(bytes: UnsafeRawBufferPointer) {
        // The callers have computed the length of the space.
        precondition(bytes.count <= space.count - count)
        guard let source = bytes.baseAddress, let start = space.baseAddress else { return }
        (start + count).copyMemory(from: source, byteCount: bytes.count)
        count += bytes.count
    }

    mutating func append(_ bytes: borrowing Span<UInt8>) { bytes.withUnsafeBytes { append(bytes: $0) } }

    mutating func append(_ byte: UInt8) { append(number: byte) }

    /// Little-endian.
    mutating func append<Number: FixedWidthInteger>(number: Number) {
        withUnsafeBytes(of: number.littleEndian) { append(bytes: $0) }
    }

    mutating func append(name: RequestName) {
        append(number: name.low)
        append(number: name.high)
    }

    /// At most 255 bytes: keys, digests and networks are shorter.
    mutating func append(text: [UInt8]) {
        let count = RequestLogWriter.bytes(ofText: text)
        append(UInt8(truncatingIfNeeded: count))
        append(text.span.extracting(0..<count))
    }

    static func bytes(ofText text: [UInt8]) -> Int { min(text.count, 255) }

    mutating func append(scope: IdempotencyScope) {
        switch scope {
        case .account(let number):
            append(0)
            append(number: number)
        case .release(let id):
            append(1)
            append(UInt8(truncatingIfNeeded: id.bytes.count))
            append(id.bytes)
        }
    }

    static func bytes(of scope: IdempotencyScope) -> Int {
        switch scope {
        case .account: 1 + 8
        case .release(let id): 2 + id.bytes.count
        }
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
}
