import CountersignWire

/// The head of an upstream's response: bytes and offsets as in ``Request``. Not copyable, so that it is
/// read where a connection has it.
struct UpstreamResponse: ~Copyable {
    enum Framing: Equatable {
        case none
        case length(Int)
        case chunked
        /// The end of the connection ends the body. Source: RFC 9112 §6.3, the last case.
        case untilClose
    }

    var head: [UInt8] = []
    var status = 0
    /// As sent, with names in any case.
    var fields: [Request.Field] = []
    /// Which known fields are among them.
    var names = FieldNames()
    var framing = Framing.none
    var keepsAlive = true
    /// The `Content-Length` of the head, even if no body follows.
    var declaredLength: Int?
    /// False for a response to HEAD, and for 1xx, 204 and 304.
    var hasBody = true
    /// All fields except those that end at this hop and those reserved for the gateway.
    var passedOn = FieldMask()

    /// Writes the fields that are passed on.
    func writeFields(to output: Buffer) {
        guard let first = fields.first else { return }
        FieldLines.copy(fields, where: passedOn, of: head.span, from: Int(first.name.start), to: output)
    }
}

/// Parses the head of an upstream's response as strictly as a request's: an ambiguous response could
/// deliver one caller's bytes to another. Source: RFC 9112 §4–6.
struct ResponseParser {
    /// Leaves room in one buffer for the fields that the gateway adds.
    static let headBytes = 60 << 10
    private static let fieldCount = 128
    private static var headTooLarge: Refusal { Refusal(.upstreamFailed, detail: "its head is over 60 KiB") }
    private var scanner = FieldLines.EndScanner()

    /// Parses a head and returns its length in bytes; nil if more bytes are needed. As
    /// ``HeadParser/parse(_:into:)``, reads a usual head in one pass.
    mutating func parse(
        _ bytes: Span<UInt8>, answeringHEAD: Bool, into response: inout UpstreamResponse
    ) throws(Refusal) -> Int? {
        if scanner.isAtStart, let head = HeadScanner(bytes),
            let length = head.response(answeringHEAD: answeringHEAD, into: &response)
        {
            return length
        }
        return try parseStrictly(bytes, answeringHEAD: answeringHEAD, into: &response)
    }

    /// As ``parse(_:answeringHEAD:into:)``. Only this function refuses a head.
    mutating func parseStrictly(
        _ bytes: Span<UInt8>, answeringHEAD: Bool, into response: inout UpstreamResponse
    ) throws(Refusal) -> Int? {
        guard let length = try scanner.end(in: bytes) else {
            guard bytes.count <= ResponseParser.headBytes else { throw ResponseParser.headTooLarge }
            return nil
        }
        guard length <= ResponseParser.headBytes else { throw ResponseParser.headTooLarge }
        scanner = FieldLines.EndScanner()
        response.head.replaceAll(with: bytes.extracting(0..<length))
        response.fields.removeAll(keepingCapacity: true)
        let (start, minorVersion) = try parseStatusLine(bytes, into: &response)
        try FieldLines.parse(
            bytes, from: start, to: length, limit: ResponseParser.fieldCount, into: &response.fields)
        response.identifyFields()
        try interpret(&response, minorVersion: minorVersion, answeringHEAD: answeringHEAD)
        return length
    }

    /// Parses `HTTP/1.x SP 3DIGIT [SP reason] CRLF`; returns the offset of the fields, and x.
    private func parseStatusLine(
        _ bytes: Span<UInt8>, into response: inout UpstreamResponse
    ) throws(Refusal) -> (fields: Int, minorVersion: Int) {
        let prefix: StaticString = "HTTP/1."
        var position = 0
        while bytes[position] != OctetClass.carriageReturn { position += 1 }
        let end = position
        guard end >= 12, FieldLines.starts(bytes, with: prefix), bytes[end + 1] == OctetClass.lineFeed else {
            throw Refusal(.malformed, detail: "not an HTTP/1.1 status line")
        }
        let minor = bytes[7]
        guard minor == UInt8(ascii: "0") || minor == UInt8(ascii: "1"), bytes[8] == OctetClass.space,
            let status = FieldLines.decimal(in: bytes, at: ByteRange(from: 9, to: 12)), status >= 100,
            status < 600,
            end == 12 || bytes[12] == OctetClass.space
        else { throw Refusal(.malformed, detail: "not an HTTP/1.1 status line") }
        response.status = status
        return (end + 2, Int(minor - UInt8(ascii: "0")))
    }

    private func interpret(
        _ response: inout UpstreamResponse, minorVersion: Int, answeringHEAD: Bool
    ) throws(Refusal) {
        var contentLength: Int?
        var isChunked = false
        var keepsAlive = minorVersion == 1
        let named = try HopByHop.named(in: response.fields, of: response.head.span)
        response.passedOn = FieldLines.passedOn(response.fields, except: named)
        for field in response.fields {
            switch field.known {
            case .contentLength:
                guard contentLength == nil,
                    let length = FieldLines.decimal(in: response.head.span, at: field.value)
                else {
                    throw Refusal(.malformed, detail: "its Content-Length is not one number")
                }
                contentLength = length
            case .transferEncoding:
                guard !isChunked, FieldLines.equals(in: response.head.span, at: field.value, text: "chunked")
                else {
                    throw Refusal(.malformed, detail: "its Transfer-Encoding is not just chunked")
                }
                isChunked = true
            case .connection:
                if FieldLines.hasMember("close", in: field.value, of: response.head.span) {
                    keepsAlive = false
                }
            default: break
            }
        }
        try response.setFraming(
            contentLength: contentLength, isChunked: isChunked, minorVersion: minorVersion,
            keepsAlive: keepsAlive, answeringHEAD: answeringHEAD)
    }
}

extension UpstreamResponse {
    fileprivate mutating func identifyFields() {
        names = FieldNames()
        for index in fields.indices {
            let (name, value) = (fields[index].name, fields[index].value)
            let identity = FieldIdentity(caseless: head.span.extracting(name.range))
            fields[index] = Request.Field(name: name, value: value, identity: identity)
            names.insert(identity.name)
        }
    }

    /// Decides where the body ends, and whether another response may follow it. `keepsAlive` is what the
    /// head says of that.
    mutating func setFraming(
        contentLength: Int?, isChunked: Bool, minorVersion: Int, keepsAlive: Bool, answeringHEAD: Bool
    ) throws(Refusal) {
        guard !(isChunked && contentLength != nil) else {
            throw Refusal(.malformed, detail: "it has both a Content-Length and a Transfer-Encoding")
        }
        // Source: RFC 9112 §6.1.
        guard !(isChunked && minorVersion == 0) else {
            throw Refusal(.malformed, detail: "it has a Transfer-Encoding in HTTP/1.0")
        }
        let announcesBody = isChunked || contentLength ?? 0 > 0
        guard status >= 200 || !announcesBody else {
            throw Refusal(.malformed, detail: "an interim answer announces a body")
        }
        let hasNoBody = answeringHEAD || status < 200 || status == 204 || status == 304
        declaredLength = contentLength
        hasBody = !hasNoBody
        framing =
            if hasNoBody { .none } else if isChunked { .chunked } else if let contentLength {
                contentLength == 0 ? .none : .length(contentLength)
            } else { .untilClose }
        // After a 204 that announces a body, the upstream may send that body, which would be read as the
        // next response. Source: RFC 9112 §6.3.
        let isSuspect = status == 204 && announcesBody
        self.keepsAlive = keepsAlive && framing != .untilClose && !isSuspect
    }
}
