import CountersignWire

/// Reads the head of an HTTP/1.1 request, and only one way: whatever two readers could take for two different
/// requests is refused. Source: RFC 9112 §2–6; the narrower choices are in docs/decisions/0001-engine.md.
package struct HeadParser {
    /// A head that was read, and what it says of the connection.
    package struct Parsed: Sendable {
        /// Bytes that were read: the head, the empty line included, and an empty line before it.
        package var length: Int
        package var keepsAlive: Bool
        package var expectsContinue: Bool
    }

    private let limits: Limits
    private let rules: HeadRules
    private let transport: Request.Transport?
    private var scanner = FieldLines.EndScanner()

    /// `transport` is what a target in absolute form must name; nil accepts `http` and `https`.
    package init(limits: Limits, rules: HeadRules = HeadRules(), transport: Request.Transport? = nil) {
        self.limits = limits
        self.rules = rules
        self.transport = transport
    }

    /// Reads a head from the start of `bytes` into `request`, or answers nil where more bytes are needed. Call again
    /// with the same bytes and more; after a head was read, call with what follows it.
    ///
    /// One empty line before the request line is skipped, as some clients end a body with one more CRLF than they
    /// announced. Source: RFC 9112 §2.2.
    package mutating func parse(_ bytes: Span<UInt8>, into request: inout Request) throws(Refusal) -> Parsed? {
        guard !bytes.isEmpty else { return nil }
        guard bytes[0] == Octet.carriageReturn else { return try parseHead(bytes, into: &request) }
        guard bytes.count > 2 else {
            guard bytes.count < 2 || bytes[1] == Octet.lineFeed else { throw emptyLineRefusal }
            return nil
        }
        guard bytes[1] == Octet.lineFeed, bytes[2] != Octet.carriageReturn else { throw emptyLineRefusal }
        guard var parsed = try parseHead(bytes.extracting(2...), into: &request) else { return nil }
        parsed.length += 2
        return parsed
    }

    private var emptyLineRefusal: Refusal {
        Refusal(.malformed, "more than one empty line, or a bare CR, stands before the request line")
    }

    private mutating func parseHead(_ bytes: Span<UInt8>, into request: inout Request) throws(Refusal) -> Parsed? {
        guard let length = try scanner.end(in: bytes) else {
            if bytes.count >= limits.headBytes { throw headTooLarge }
            return nil
        }
        guard length <= limits.headBytes else { throw headTooLarge }
        scanner = FieldLines.EndScanner()

        request.reset()
        bytes.extracting(0..<length).withUnsafeBufferPointer { request.head.append(contentsOf: $0) }
        let fieldStart = try parseRequestLine(bytes, into: &request)
        let underscores = try FieldLines.parse(
            bytes, from: fieldStart, to: length, limit: limits.fieldCount, into: &request.fields)
        lowercaseNames(&request)
        if underscores == .some { try applyUnderscoreRule(to: &request) }
        request.tellFieldsApart()
        if request.minorVersion == 0, !request.names.contains(.host) { try addHost(to: &request) }
        return try interpret(&request, length: length)
    }

    private var headTooLarge: Refusal { Refusal(.tooLarge, "the head is over \(limits.headBytes) bytes") }

    /// `METHOD SP target SP HTTP/1.x CRLF`; answers where the fields begin.
    private func parseRequestLine(_ bytes: Span<UInt8>, into request: inout Request) throws(Refusal) -> Int {
        var position = 0
        while Octet.isUpperCase(bytes[position]) { position += 1 }
        let first = bytes[0]
        if bytes[position] != Octet.space || first == UInt8(ascii: "C") || first == UInt8(ascii: "T")
            || (position == 3 && first == UInt8(ascii: "P"))
        {
            position = try endOfUnusualMethod(bytes)
        }
        guard position > 0, position <= 32 else {
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
        if bytes[start] != UInt8(ascii: "/") { try parseUnusualTarget(bytes, of: &request) }
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

    /// The end of a method that is not simply upper-case letters, or that may be `CONNECT`, `TRACE` or `PRI`.
    ///
    /// A tunnel is not for a gateway that judges requests, `TRACE` shows a page the fields that it could not read, and
    /// `PRI` begins a connection of HTTP/2 (RFC 9113 §3.4).
    private func endOfUnusualMethod(_ bytes: Span<UInt8>) throws(Refusal) -> Int {
        var end = 0
        while Octet.isToken(bytes[end]) { end += 1 }
        guard end > 0, end <= 32, bytes[end] == Octet.space else {
            throw Refusal(.malformed, "the request line does not begin with a method and a space")
        }
        let method = Slice(0, end)
        guard !rules.adds(method, of: bytes) else { return end }
        for index in method.range where !Octet.isUpperCase(bytes[index]) {
            throw Refusal(.malformed, "the method holds the byte \(FieldLines.hex(bytes[index])); expected A to Z")
        }
        guard !FieldLines.equals(bytes, method, "connect"), !FieldLines.equals(bytes, method, "trace"),
            !FieldLines.equals(bytes, method, "pri")
        else { throw Refusal(.malformed, "the method is CONNECT, TRACE or PRI, which are not served") }
        return end
    }

    /// `*` of `OPTIONS`, and the absolute form `http://host/path`, of which the origin form stays as the target.
    /// Source: RFC 9112 §3.2.2, §3.2.4.
    private func parseUnusualTarget(_ bytes: Span<UInt8>, of request: inout Request) throws(Refusal) {
        let target = request.target
        if target.count == 1, bytes[Int(target.start)] == UInt8(ascii: "*"), request.matches(request.method, "OPTIONS")
        {
            return
        }
        let rest = bytes.extracting(target.range)
        let prefix: Int
        if transport != .tls, FieldLines.starts(rest, withCaseless: "http://") {
            prefix = 7
        } else if transport != .plain, FieldLines.starts(rest, withCaseless: "https://") {
            prefix = 8
        } else {
            throw Refusal(.malformed, "the request target begins neither with '/' nor with this listener's scheme")
        }
        var path = prefix
        while path < rest.count, Octet.isHost(rest[path]) { path += 1 }
        guard path > prefix, path < rest.count, rest[path] == UInt8(ascii: "/") else {
            throw Refusal(.malformed, "the request target in absolute form does not name a host and then a path")
        }
        let start = Int(target.start)
        request.absoluteAuthority = Slice(start + prefix, start + path)
        request.target = Slice(start + path, Int(target.end))
    }

    private func applyUnderscoreRule(to request: inout Request) throws(Refusal) {
        switch rules.underscoreFields {
        case .keep: return
        case .drop: try request.removeFieldsWithUnderscores(limit: limits.fieldCount)
        case .refuse: throw Refusal(.malformed, "a field name holds an underscore")
        }
    }

    /// HTTP/1.0 asks for no `Host`: the target's authority stands for it, or the one that is configured.
    /// Source: RFC 9112 §3.3.
    private func addHost(to request: inout Request) throws(Refusal) {
        guard request.fields.count < limits.fieldCount else {
            throw Refusal(.tooLarge, "more than \(limits.fieldCount) header fields")
        }
        if !request.absoluteAuthority.isEmpty {
            request.addHost(Array(request.head[request.absoluteAuthority.range]))
        } else if let authority = rules.defaultAuthority {
            request.addHost(authority.utf8)
        }
        request.tellFieldsApart()
    }

    private func lowercaseNames(_ request: inout Request) {
        let fields = request.fields
        request.head.withUnsafeMutableBytes { head in
            for field in fields { Octet.lowercase(head[field.name.range]) }
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
        if request.names.contains(.connection) {
            let named = try HopByHop.named(in: request.fields, of: request.head.span)
            request.endingHere = named
        }
        let control = try control(of: request)
        guard let host = control.host else { throw Refusal(.malformed, "there is no Host field") }
        guard
            request.absoluteAuthority.isEmpty
                || FieldLines.equals(request.head.span, request.absoluteAuthority, host)
        else { throw Refusal(.malformed, "the request target names another authority than the Host field") }
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
        var hasExpectation = false
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
                if try HeadParser.announcesClose(value, of: bytes) { control.keepsAlive = false }
            case .expect:
                guard !hasExpectation, FieldLines.equals(bytes, value, "100-continue") else {
                    throw Refusal(.malformed, "the Expect field is not 100-continue, once")
                }
                hasExpectation = true
                control.expectsContinue = request.minorVersion == 1
            default: break
            }
        }
        return control
    }

    /// Whether a `Connection` field says `close`. It must not name fields that give the request its meaning:
    /// anyone on the path can write it, because it cannot be signed. Source: RFC 9110 §7.6.1.
    private static func announcesClose(_ value: Slice, of bytes: Span<UInt8>) throws(Refusal) -> Bool {
        var announcesClose = false
        var rest = value
        while let member = FieldLines.nextMember(of: &rest, in: bytes) {
            func equals(_ text: StaticString) -> Bool { FieldLines.equals(bytes, member, text) }
            let isEndToEnd =
                switch member.count {
                case 4: equals("host")
                case 6: equals("cookie")
                case 12: equals("content-type")
                case 13: equals("authorization")
                case 14: equals("content-digest") || equals("content-length")
                case 15: equals("idempotency-key")
                default: false
                }
            guard !isEndToEnd else {
                let name = bytes.extracting(member.range).withUnsafeBytes {
                    String(decoding: $0, as: UTF8.self)
                }
                throw Refusal(
                    .malformed, "the Connection field names \(name), which is not for one hop alone")
            }
            if equals("close") { announcesClose = true }
        }
        return announcesClose
    }
}
