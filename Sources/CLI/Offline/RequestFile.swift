import CountersignHTTP
import CountersignWire

/// One HTTP/1.1 request from a file or a pipe, as people keep them: lines may end in LF, here and nowhere
/// else.
enum RequestFile {
    /// Reads exactly one request. A body without a Content-Length is all that follows the head.
    static func read(_ bytes: [UInt8], transport: Request.Transport) throws(Refusal) -> Request {
        var (head, rest) = split(bytes)
        guard value(of: "transfer-encoding:", in: head) == nil else {
            throw Refusal(
                .malformed,
                detail: "a Transfer-Encoding; expected the body as it is, with its Content-Length or none")
        }
        let length = try declaredLength(head)
        if length == nil, !rest.isEmpty {
            head.insert(contentsOf: "Content-Length: \(rest.count)\r\n".utf8, at: head.count - 2)
        }
        // A file's last line ends somewhere; that end is not the body's.
        if let length, rest.count > length,
            Array(rest[length...]) == [0x0A] || Array(rest[length...]) == [0x0D, 0x0A]
        {
            rest.removeSubrange(length...)
        }
        if let length, rest.count != length {
            throw Refusal(
                .malformed, detail: "Content-Length says \(length) bytes, and \(rest.count) follow the head")
        }
        var limits = Limits()
        limits.headBytes = 1 << 20
        limits.targetBytes = 1 << 16
        var parser = HeadParser(limits: limits)
        var request = Request()
        guard try parser.parse(head.span, into: &request) != nil else {
            throw Refusal(.malformed, detail: "the head has no end: expected an empty line")
        }
        request.transport = transport
        request.body = rest
        return request
    }

    /// The head with CRLF at the end of each line and an empty line at its own end, and what follows it.
    private static func split(_ bytes: [UInt8]) -> (head: [UInt8], rest: [UInt8]) {
        var head: [UInt8] = []
        var start = 0
        while start < bytes.count {
            let end = bytes[start...].firstIndex(of: 0x0A) ?? bytes.count
            var line = bytes[start..<end]
            if line.last == 0x0D { line.removeLast() }
            head += line + [0x0D, 0x0A]
            start = end + 1
            if line.isEmpty { return (head, start < bytes.count ? Array(bytes[start...]) : []) }
        }
        return (head + [0x0D, 0x0A], [])
    }

    private static func declaredLength(_ head: [UInt8]) throws(Refusal) -> Int? {
        guard let value = value(of: "content-length:", in: head) else { return nil }
        guard !value.isEmpty, value.count <= 9, value.allSatisfy(ASCII.isDigit),
            let length = Int(String(decoding: value, as: UTF8.self))
        else { throw Refusal(.malformed, detail: "the Content-Length is not a number of up to nine digits") }
        return length
    }

    /// The first such field's, without white space: only for finding the body, before the strict parser
    /// judges.
    private static func value(of name: String, in head: [UInt8]) -> [UInt8]? {
        let name = Array(name.utf8)
        let line = head.split(separator: 0x0A).first { $0.prefix(name.count).map(ASCII.lowercased) == name }
        return line.map { $0.dropFirst(name.count).filter { $0 != 0x20 && $0 != 0x09 && $0 != 0x0D } }
    }
}
