// Records of the log of keyed requests.
import CountersignSeal

@testable import CountersignAuthority

/// One record: without a tag of its key it is none; with one, it is refused, or written again as it was read.
@Sendable func fuzzRequestLog(_ bytes: Span<UInt8>) {
    let key = KeyedHash(key: KeyedHash.Key { UInt8($0) })
    let offset = 64
    precondition(RequestLogRecord(bytes, at: offset, key: key) == nil, "a tag that was guessed")
    guard bytes.count > 8 else { return }
    let content = bytes.extracting(9...).withUnsafeBufferPointer { Array($0) }
    var record: [UInt8] = []
    record.append(number: UInt64(offset), bytes: 4)
    record.append(number: bytes.number(at: 0, bytes: 8), bytes: 8)
    record.append(number: UInt64(content.count), bytes: 2)
    record.append(bytes[8])
    record.append(0)
    record += content
    let tag = key.hash(record.span)
    record.append(number: tag.low, bytes: 8)
    record.append(number: tag.high, bytes: 8)
    guard let read = RequestLogRecord(record.span, at: offset, key: key) else { return }
    precondition(read.bytes == record.count && read.bodyBytes <= RequestLogRecord.mostBodyBytes)
    guard read.bodyBytes < 4_096 else { return }
    var again: [UInt8] = []
    RequestLogRecord.append(
        read.content, body: [UInt8](repeating: 0, count: read.bodyBytes), to: &again, from: offset,
        durable: read.durable, key: key)
    precondition(again.prefix(record.count) == record[...], "a record with two spellings")
    // A cut or altered one is none.
    precondition(RequestLogRecord(record.span.extracting(0..<record.count - 1), at: offset, key: key) == nil)
    precondition(RequestLogRecord(record.span, at: offset + 1, key: key) == nil)
}
