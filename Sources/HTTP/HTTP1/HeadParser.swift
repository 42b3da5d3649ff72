import CountersignWire

/// Parses the head of an HTTP/1.1 request, and refuses every head that two parsers could read as two
/// different requests. Source: RFC 9112 §2–6; docs/decisions/0001-engine.md lists the stricter choices.
package struct HeadParser {
    /// The length of a parsed head, and what it says about the connection.
    package struct Parsed: Sendable {
        /// Bytes consumed: the head with its empty line, and an empty line before it.
        package var length: Int
        package var keepsAlive: Bool
        package var expectsContinue: Bool
    }

    private let limits: Limits
    private let rules: HeadRules
    private let transport: Request.Transport?
    private var scanner = FieldLines.EndScanner()

    /// `transport` determines the scheme that a target in absolute form must have; nil accepts `http` and
    /// `https`.
    package init(limits: Limits, rules: HeadRules = HeadRules(), transport: Request.Transport? = nil) {
        self.limits = limits
        self.rules = rules
        self.transport = transport
    }

    /// Parses a head from the start of `bytes` into `request`; nil if more bytes are needed. Then call
    /// again with the same bytes and more; after a parsed head, call with the bytes that follow it.
    ///
    /// Skips one empty line before the request line, because some clients send an extra CRLF after a body.
    /// Source: RFC 9112 §2.2.
    ///
    /// A head that arrived in one piece and is a usual one is read in one pass. A piece of a head is scanned
    /// once, whatever the number of calls.
    package mutating func parse(_ bytes: Span<UInt8>, into request: inout Request) throws(Refusal) -> Parsed?
    {
        if scanner.isAtStart, let head = HeadScanner(bytes),
            let parsed = head.request(limits: limits, into: &request)
        {
            return parsed
        }
        return try parseStrictly(bytes, into: &request)
    }

    /// As ``parse(_:into:)``. Only this function refuses a head.
    mutating func parseStrictly(_ bytes: Span<UInt8>, into request: inout Request) throws(Refusal) -> Parsed?
    {
        guard !bytes.isEmpty else { return nil }
        guard bytes[0] == OctetClass.carriageReturn else { return try parseHead(bytes, into: &request) }
        guard bytes.count > 2 else {
            guard bytes.count < 2 || bytes[1] == OctetClass.lineFeed else { throw emptyLineRefusal }
            return nil
        }
        guard bytes[1] == OctetClass.lineFeed, bytes[2] != OctetClass.carriageReturn else {
            throw emptyLineRefusal
        }
        guard var parsed = try parseHead(bytes.extracting(2...), into: &request) else { return nil }
        parsed.length += 2
        return parsed
    }

    private var emptyLineRefusal: Refusal {
        Refusal(.malformed, detail: "more than one empty line, or a bare CR, stands before the request line")
    }

    private mutating func parseHead(_ bytes: Span<UInt8>, into request: inout Request) throws(Refusal)
        -> Parsed?
    {
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
        request.identifyFields()
        if request.minorVersion == 0, !request.names.contains(.host) { try addHost(to: &request) }
        return try interpret(&request, length: length)
    }

    private var headTooLarge: Refusal {
        Refusal(.tooLarge, detail: "the head is over \(limits.headBytes) bytes")
    }

    /// Parses `METHOD SP target SP HTTP/1.x CRLF`; returns the offset of the fields.
    private func parseRequestLine(_ bytes: Span<UInt8>, into request: inout Request) throws(Refusal) -> Int {
        var position = 0
        while OctetClass.isUpperCase(bytes[position]) { position += 1 }
        let first = bytes[0]
        if bytes[position] != OctetClass.space || first == UInt8(ascii: "C") || first == UInt8(ascii: "T")
            || (position == 3 && first == UInt8(ascii: "P"))
        {
            position = try endOfUnusualMethod(bytes)
        }
        guard position > 0, position <= 32 else {
            throw Refusal(.malformed, detail: "the request line does not begin with a method and a space")
        }
        request.method = ByteRange(from: 0, to: position)
        let start = position + 1
        position = start
        while OctetClass.isTarget(bytes[position]) { position += 1 }
        guard position > start, bytes[position] == OctetClass.space else {
            throw Refusal(
                .malformed,
                detail: "the request target is empty or holds the byte \(FieldLines.hex(bytes[position]))")
        }
        guard position - start <= limits.targetBytes else {
            throw Refusal(.tooLarge, detail: "the request target is over \(limits.targetBytes) bytes")
        }
        request.target = ByteRange(from: start, to: position)
        if bytes[start] != UInt8(ascii: "/") { try parseUnusualTarget(bytes, of: &request) }
        request.splitTarget()
        position += 1
        let version: StaticString = "HTTP/1."
        for offset in 0..<version.utf8CodeUnitCount {
            guard bytes[position] == version.utf8Start[offset] else {
                throw Refusal(.malformed, detail: "the request line does not end in HTTP/1.1")
            }
            position += 1
        }
        let minor = bytes[position]
        guard minor == UInt8(ascii: "1") || minor == UInt8(ascii: "0"),
            bytes[position + 1] == OctetClass.carriageReturn, bytes[position + 2] == OctetClass.lineFeed
        else { throw Refusal(.malformed, detail: "the request line does not end in HTTP/1.1 or HTTP/1.0") }
        request.minorVersion = Int(minor - UInt8(ascii: "0"))
        return position + 3
    }

    /// The end of a method that has characters other than upper-case letters, or may be `CONNECT`, `TRACE`
    /// or `PRI`.
    ///
    /// The gateway cannot judge the requests inside a tunnel, `TRACE` shows a web page fields that it could
    /// not read otherwise, and `PRI` begins an HTTP/2 connection (RFC 9113 §3.4).
    private func endOfUnusualMethod(_ bytes: Span<UInt8>) throws(Refusal) -> Int {
        var end = 0
        while OctetClass.isToken(bytes[end]) { end += 1 }
        guard end > 0, end <= 32, bytes[end] == OctetClass.space else {
            throw Refusal(.malformed, detail: "the request line does not begin with a method and a space")
        }
        let method = ByteRange(from: 0, to: end)
        guard !rules.adds(method, of: bytes) else { return end }
        for index in method.range where !OctetClass.isUpperCase(bytes[index]) {
            throw Refusal(
                .malformed,
                detail: "the method holds the byte \(FieldLines.hex(bytes[index])); expected A to Z")
        }
        guard !FieldLines.equals(in: bytes, at: method, text: "connect"),
            !FieldLines.equals(in: bytes, at: method, text: "trace"),
            !FieldLines.equals(in: bytes, at: method, text: "pri")
        else {
            throw Refusal(.malformed, detail: "the method is CONNECT, TRACE or PRI, which are not served")
        }
        return end
    }

    /// Parses the `*` of `OPTIONS`, and the absolute form `http://host/path`, which it reduces to the
    /// origin form. Source: RFC 9112 §3.2.2, §3.2.4.
    private func parseUnusualTarget(_ bytes: Span<UInt8>, of request: inout Request) throws(Refusal) {
        let target = request.target
        if target.count == 1, bytes[Int(target.start)] == UInt8(ascii: "*"),
            request.matches(request.method, text: "OPTIONS")
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
            throw Refusal(
                .malformed,
                detail: "the request target begins neither with '/' nor with this listener's scheme")
        }
        var path = prefix
        while path < rest.count, OctetClass.isHost(rest[path]) { path += 1 }
        guard path > prefix, path < rest.count, rest[path] == UInt8(ascii: "/") else {
            throw Refusal(
                .malformed, detail: "the request target in absolute form does not name a host and then a path"
            )
        }
        let start = Int(target.start)
        request.absoluteAuthority = ByteRange(from: start + prefix, to: start + path)
        request.target = ByteRange(from: start + path, to: Int(target.end))
    }

    private func applyUnderscoreRule(to request: inout Request) throws(Refusal) {
        switch rules.underscoreFields {
        case .keep: return
        case .drop: try request.removeFieldsWithUnderscores(limit: limits.fieldCount)
        case .refuse: throw Refusal(.malformed, detail: "a field name holds an underscore")
        }
    }

    /// Adds a `Host`, which HTTP/1.0 does not require: the target's authority, or else the configured one.
    /// Source: RFC 9112 §3.3.
    private func addHost(to request: inout Request) throws(Refusal) {
        guard request.fields.count < limits.fieldCount else {
            throw Refusal(.tooLarge, detail: "more than \(limits.fieldCount) header fields")
        }
        if !request.absoluteAuthority.isEmpty {
            request.addHost(Array(request.head[request.absoluteAuthority.range]))
        } else if let authority = rules.defaultAuthority {
            request.addHost(authority.utf8)
        }
        request.identifyFields()
    }

    private func lowercaseNames(_ request: inout Request) {
        let fields = request.fields
        request.head.withUnsafeMutableBytes { head in
            for field in fields { OctetClass.lowercase(head[field.name.range]) }
        }
    }

    /// The fields that control the message's destination, its framing and the connection.
    private struct Control {
        var host: ByteRange?
        var contentLength: Int?
        var isChunked = false
        var keepsAlive: Bool
        var expectsContinue = false
    }

    private func interpret(_ request: inout Request, length: Int) throws(Refusal) -> Parsed {
        if request.names.contains(.connection) {
            let named = try HopByHop.named(in: request.fields, of: request.head.span)
            request.hopByHopFields = named
        }
        let control = try control(of: request)
        guard let host = control.host else { throw Refusal(.malformed, detail: "there is no Host field") }
        guard
            request.absoluteAuthority.isEmpty
                || FieldLines.equals(in: request.head.span, left: request.absoluteAuthority, right: host)
        else {
            throw Refusal(
                .malformed, detail: "the request target names another authority than the Host field")
        }
        request.authority = host
        request.framing =
            switch (control.contentLength, control.isChunked) {
            case (.some, true):
                throw Refusal(.malformed, detail: "there are both a Content-Length and a Transfer-Encoding")
            case (nil, true): .chunked
            case (let length?, false): length == 0 ? .none : .length(length)
            case (nil, false): .none
            }
        if control.isChunked, request.minorVersion == 0 {
            throw Refusal(.malformed, detail: "an HTTP/1.0 request has a Transfer-Encoding")
        }
        return Parsed(
            length: length, keepsAlive: control.keepsAlive, expectsContinue: control.expectsContinue)
    }

    /// Reads the fields that the engine itself acts on; of each, only one form is accepted.
    private func control(of request: borrowing Request) throws(Refusal) -> Control {
        var control = Control(keepsAlive: request.minorVersion == 1)
        var hasType = false
        var hasExpectation = false
        let bytes = request.head.span
        for field in request.fields {
            let value = field.value
            switch field.known {
            case .host:
                guard control.host == nil else {
                    throw Refusal(.malformed, detail: "there are two Host fields")
                }
                guard !value.isEmpty, value.range.allSatisfy({ OctetClass.isHost(bytes[$0]) }) else {
                    throw Refusal(
                        .malformed,
                        detail: "the Host field is empty or holds a character that no host name has")
                }
                control.host = value
            case .contentLength:
                guard control.contentLength == nil else {
                    throw Refusal(.malformed, detail: "there are two Content-Length fields")
                }
                guard let length = FieldLines.decimal(in: bytes, at: value) else {
                    throw Refusal(.malformed, detail: "the Content-Length is not a number of up to 18 digits")
                }
                control.contentLength = length
            case .transferEncoding:
                guard !control.isChunked, FieldLines.equals(in: bytes, at: value, text: "chunked") else {
                    throw Refusal(.malformed, detail: "the Transfer-Encoding is not just chunked")
                }
                control.isChunked = true
            case .contentType:
                // Readers differ on which of two fields counts, and so on the meaning of the body.
                guard !hasType else { throw Refusal(.malformed, detail: "there are two Content-Type fields") }
                hasType = true
            case .connection:
                if try HeadParser.announcesClose(value, of: bytes) { control.keepsAlive = false }
            case .expect:
                guard !hasExpectation, FieldLines.equals(in: bytes, at: value, text: "100-continue") else {
                    throw Refusal(.malformed, detail: "the Expect field is not 100-continue, once")
                }
                hasExpectation = true
                control.expectsContinue = request.minorVersion == 1
            default: break
            }
        }
        return control
    }

    /// Whether a `Connection` field contains `close`. Refuses one that names fields which determine the
    /// request's meaning: any intermediary can write the field, because it cannot be signed. Source: RFC
    /// 9110 §7.6.1.
    private static func announcesClose(_ value: ByteRange, of bytes: Span<UInt8>) throws(Refusal) -> Bool {
        var announcesClose = false
        var rest = value
        while let member = FieldLines.nextMember(of: &rest, in: bytes) {
            func equals(_ text: StaticString) -> Bool { FieldLines.equals(in: bytes, at: member, text: text) }
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
                    .malformed, detail: "the Connection field names \(name), which is not for one hop alone")
            }
            if equals("close") { announcesClose = true }
        }
        return announcesClose
    }
}
