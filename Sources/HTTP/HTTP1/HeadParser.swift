import CountersignWire

/// Reads the head of an HTTP/1.1 request, and only one way: whatever two readers could take for two different
/// requests is refused. Source: RFC 9112 §2–6; the narrower choices are in docs/decisions/0001-engine.md.
package struct HeadParser {
    /// A head that was read, and what it says of the connection.
    package struct Parsed: Sendable {
        /// Bytes of the head, the empty line included.
        package var length: Int
        package var keepsAlive: Bool
        package var expectsContinue: Bool
    }

    /// What `Connection` must not name: it would take away, on the last hop and unsigned, what the request means.
    /// Source: RFC 9110 §7.6.1.
    private static var endToEnd: [StaticString] {
        ["host", "content-type", "content-digest", "content-length", "idempotency-key", "authorization", "cookie"]
    }

    private let limits: Limits
    private var scanner = FieldLines.EndScanner()

    package init(limits: Limits) { self.limits = limits }

    /// Reads a head from the start of `bytes` into `request`, or answers nil where more bytes are needed. Call again
    /// with the same bytes and more; after a head was read, call with what follows it.
    package mutating func parse(_ bytes: Span<UInt8>, into request: inout Request) throws(Refusal) -> Parsed? {
        guard let length = try scanner.end(in: bytes) else {
            if bytes.count >= limits.headBytes { throw headTooLarge }
            return nil
        }
        guard length <= limits.headBytes else { throw headTooLarge }
        scanner = FieldLines.EndScanner()

        request.reset()
        bytes.extracting(0..<length).withUnsafeBufferPointer { request.head.append(contentsOf: $0) }
        let fieldStart = try parseRequestLine(bytes, into: &request)
        try FieldLines.parse(bytes, from: fieldStart, to: length, limit: limits.fieldCount, into: &request.fields)
        lowercaseNames(&request)
        request.tellFieldsApart()
        return try interpret(&request, length: length)
    }

    private var headTooLarge: Refusal { Refusal(.tooLarge, "the head is over \(limits.headBytes) bytes") }

    /// `METHOD SP target SP HTTP/1.x CRLF`; answers where the fields begin.
    private func parseRequestLine(_ bytes: Span<UInt8>, into request: inout Request) throws(Refusal) -> Int {
        var position = 0
        while Octet.isToken(bytes[position]) { position += 1 }
        guard position > 0, position <= 32, bytes[position] == Octet.space else {
            throw Refusal(.malformed, "the request line does not begin with a method and a space")
        }
        request.method = Slice(0, position)
        let start = position + 1
        position = start
        while Octet.isTarget(bytes[position]) { position += 1 }
        guard position > start, bytes[position] == Octet.space else {
            throw Refusal(
                .malformed, "the request target is empty or holds the byte \(FieldLines.hex(bytes[position]))")
        }
        guard position - start <= limits.targetBytes else {
            throw Refusal(.tooLarge, "the request target is over \(limits.targetBytes) bytes")
        }
        request.target = Slice(start, position)
        let isAsterisk = position == start + 1 && bytes[start] == UInt8(ascii: "*")
        guard bytes[start] == UInt8(ascii: "/") || (isAsterisk && request.matches(request.method, "OPTIONS")) else {
            throw Refusal(.malformed, "the request target does not begin with '/'")
        }
        request.splitTarget()
        position += 1
        let version: StaticString = "HTTP/1."
        for offset in 0..<version.utf8CodeUnitCount {
            guard bytes[position] == version.utf8Start[offset] else {
                throw Refusal(.malformed, "the request line does not end in HTTP/1.1")
            }
            position += 1
        }
        let minor = bytes[position]
        guard minor == UInt8(ascii: "1") || minor == UInt8(ascii: "0"),
            bytes[position + 1] == Octet.carriageReturn, bytes[position + 2] == Octet.lineFeed
        else { throw Refusal(.malformed, "the request line does not end in HTTP/1.1 or HTTP/1.0") }
        request.minorVersion = Int(minor - UInt8(ascii: "0"))
        return position + 3
    }

    private func lowercaseNames(_ request: inout Request) {
        let fields = request.fields
        var head = request.head.mutableSpan
        for field in fields {
            for index in field.name.range {
                let byte = head[index]
                if byte &- UInt8(ascii: "A") < 26 { head[index] = byte | 0x20 }
            }
        }
    }

    /// What the fields say about where the message goes, where it ends and what comes after it.
    private struct Control {
        var host: Slice?
        var contentLength: Int?
        var isChunked = false
        var keepsAlive: Bool
        var expectsContinue = false
    }

    private func interpret(_ request: inout Request, length: Int) throws(Refusal) -> Parsed {
        let control = try control(of: request)
        guard let host = control.host else { throw Refusal(.malformed, "there is no Host field") }
        request.authority = host
        request.framing =
            switch (control.contentLength, control.isChunked) {
            case (.some, true): throw Refusal(.malformed, "there are both a Content-Length and a Transfer-Encoding")
            case (nil, true): .chunked
            case (let length?, false): length == 0 ? .none : .length(length)
            case (nil, false): .none
            }
        if control.isChunked, request.minorVersion == 0 {
            throw Refusal(.malformed, "an HTTP/1.0 request has a Transfer-Encoding")
        }
        return Parsed(length: length, keepsAlive: control.keepsAlive, expectsContinue: control.expectsContinue)
    }

    /// Reads the fields that the engine itself obeys; each may be said in one way only.
    private func control(of request: borrowing Request) throws(Refusal) -> Control {
        var control = Control(keepsAlive: request.minorVersion == 1)
        var hasType = false
        let bytes = request.head.span
        for field in request.fields {
            let value = field.value
            switch field.known {
            case .host:
                guard control.host == nil else { throw Refusal(.malformed, "there are two Host fields") }
                guard !value.isEmpty, value.range.allSatisfy({ Octet.isHost(bytes[$0]) }) else {
                    throw Refusal(.malformed, "the Host field is empty or holds a character that no host name has")
                }
                control.host = value
            case .contentLength:
                guard control.contentLength == nil else {
                    throw Refusal(.malformed, "there are two Content-Length fields")
                }
                guard let length = FieldLines.decimal(bytes, value) else {
                    throw Refusal(.malformed, "the Content-Length is not a number of up to 18 digits")
                }
                control.contentLength = length
            case .transferEncoding:
                guard !control.isChunked, FieldLines.equals(bytes, value, "chunked") else {
                    throw Refusal(.malformed, "the Transfer-Encoding is not just chunked")
                }
                control.isChunked = true
            case .contentType:
                // Which of them counts is for each reader to choose, and with it what the body says.
                guard !hasType else { throw Refusal(.malformed, "there are two Content-Type fields") }
                hasType = true
            case .connection:
                if FieldLines.hasMember("close", in: value, of: bytes) { control.keepsAlive = false }
                for name in HeadParser.endToEnd where FieldLines.hasMember(name, in: value, of: bytes) {
                    throw Refusal(.malformed, "the Connection field names \(name), which is not for one hop alone")
                }
            case .expect:
                guard FieldLines.equals(bytes, value, "100-continue") else {
                    throw Refusal(.malformed, "the Expect field is not 100-continue")
                }
                control.expectsContinue = request.minorVersion == 1
            default: break
            }
        }
        return control
    }
}

extension Request {
    /// Empties the request and keeps its buffers, so that the next one on the connection allocates nothing.
    package mutating func reset() {
        head.removeAll(keepingCapacity: true)
        fields.removeAll(keepingCapacity: true)
        if !body.isEmpty { body = [] }
        method = .empty
        target = .empty
        path = .empty
        query = nil
        authority = .empty
        framing = .none
        isBodyWhole = true
        minorVersion = 1
    }
}
