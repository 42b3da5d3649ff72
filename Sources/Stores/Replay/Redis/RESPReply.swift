/// One reply of a Redis server. Source: redis.io, "Redis serialization protocol specification", RESP2.
package enum RESPReply: Sendable, Equatable {
    case simple(String)
    /// The message; it begins with a code in upper case, such as `NOSCRIPT`.
    case error(String)
    case integer(Int64)
    case bulk([UInt8])
    case array([RESPReply])
    /// A bulk string or an array that does not exist.
    case null

    /// The text of a simple or bulk string; nil for others, and for bytes that are not UTF-8.
    var text: String? {
        switch self {
        case .simple(let text): text
        case .bulk(let bytes): String(validating: bytes, as: UTF8.self)
        default: nil
        }
    }
}

/// Reads replies from the bytes of a connection, which may end anywhere. Whatever the bytes are, memory and
/// work are bounded; a reply of another form ends the connection.
package struct RESPReader: Sendable {
    package enum ReaderError: Error, Equatable {
        /// The bytes are no reply that this client expects, or one that is too large.
        case malformed
    }

    /// The reply to `INFO` is the longest one, with about 6 KB.
    static let mostBulkBytes = 64 << 10
    static let mostLineBytes = 1 << 10
    static let mostElements = 64
    static let mostDepth = 2
    /// Bytes without a whole reply. An array's elements may be as large as each may be, and their sum may
    /// not.
    static let mostPending = mostBulkBytes + mostLineBytes

    private var bytes: [UInt8] = []
    private var start = 0

    package init() {}

    package mutating func append(_ more: some Collection<UInt8>) {
        if start > 0 {
            bytes.removeFirst(start)
            start = 0
        }
        bytes.append(contentsOf: more)
    }

    /// The next whole reply; nil until more bytes have come.
    package mutating func next() throws(ReaderError) -> RESPReply? {
        var cursor = start
        guard let reply = try reply(at: &cursor, depth: 0) else {
            guard bytes.count - start <= RESPReader.mostPending else { throw .malformed }
            return nil
        }
        start = cursor
        return reply
    }

    private func reply(at cursor: inout Int, depth: Int) throws(ReaderError) -> RESPReply? {
        guard cursor < bytes.count else { return nil }
        let kind = bytes[cursor]
        guard "+-:$*".utf8.contains(kind) else { throw .malformed }
        var end = cursor + 1
        guard let line = try line(at: &end) else { return nil }
        switch kind {
        case UInt8(ascii: "+"):
            cursor = end
            return .simple(try text(line))
        case UInt8(ascii: "-"):
            cursor = end
            return .error(try text(line))
        case UInt8(ascii: ":"):
            cursor = end
            return .integer(try number(line))
        case UInt8(ascii: "$"):
            guard let count = try count(line, most: RESPReader.mostBulkBytes) else {
                cursor = end
                return .null
            }
            guard bytes.count - end >= count + 2 else { return nil }
            guard bytes[end + count] == 0x0D, bytes[end + count + 1] == 0x0A else { throw .malformed }
            cursor = end + count + 2
            return .bulk(Array(bytes[end..<end + count]))
        case UInt8(ascii: "*"):
            guard depth < RESPReader.mostDepth else { throw .malformed }
            guard let count = try count(line, most: RESPReader.mostElements) else {
                cursor = end
                return .null
            }
            var elements: [RESPReply] = []
            for _ in 0..<count {
                guard let element = try reply(at: &end, depth: depth + 1) else { return nil }
                elements.append(element)
            }
            cursor = end
            return .array(elements)
        default: throw .malformed
        }
    }

    /// The line that begins at `cursor`, which moves behind its end; nil if the end has not come.
    private func line(at cursor: inout Int) throws(ReaderError) -> ArraySlice<UInt8>? {
        let limit = min(bytes.count, cursor + RESPReader.mostLineBytes)
        guard let end = bytes[cursor..<limit].firstIndex(of: 0x0D) else {
            guard limit == bytes.count else { throw .malformed }
            return nil
        }
        guard end + 1 < bytes.count else { return nil }
        guard bytes[end + 1] == 0x0A else { throw .malformed }
        defer { cursor = end + 2 }
        return bytes[cursor..<end]
    }

    private func text(_ line: ArraySlice<UInt8>) throws(ReaderError) -> String {
        guard let text = String(validating: line, as: UTF8.self) else { throw .malformed }
        return text
    }

    private func number(_ line: ArraySlice<UInt8>) throws(ReaderError) -> Int64 {
        guard line.first != UInt8(ascii: "+"), let number = Int64(try text(line)) else { throw .malformed }
        return number
    }

    /// Nil for -1.
    private func count(_ line: ArraySlice<UInt8>, most: Int) throws(ReaderError) -> Int? {
        let number = try number(line)
        if number == -1 { return nil }
        guard number >= 0, number <= Int64(most) else { throw .malformed }
        return Int(number)
    }
}

/// Writes commands, each as an array of bulk strings.
enum RESPCommand {
    static func encode(_ parts: [String]) -> [UInt8] {
        var bytes: [UInt8] = []
        append(parts, to: &bytes)
        return bytes
    }

    static func append(_ parts: [String], to bytes: inout [UInt8]) {
        bytes.append(contentsOf: "*\(parts.count)\r\n".utf8)
        for part in parts {
            bytes.append(contentsOf: "$\(part.utf8.count)\r\n".utf8)
            bytes.append(contentsOf: part.utf8)
            bytes.append(contentsOf: "\r\n".utf8)
        }
    }
}
