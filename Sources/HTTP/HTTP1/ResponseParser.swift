import CountersignWire

/// The head of an upstream's response: bytes and offsets as in ``Request``.
struct UpstreamResponse {
    enum Framing: Equatable {
        case none
        case length(Int)
        case chunked
        /// The end of the connection ends the body. Source: RFC 9112 §6.3, the last case.
        case untilClose
    }

    var head: [UInt8] = []
    var status = 0
    var fields: [Request.Field] = []
    var framing = Framing.none
    var keepsAlive = true
    /// The `Content-Length` of the head, even if no body follows.
    var declaredLength: Int?
    /// False for a response to HEAD, and for 1xx, 204 and 304.
    var hasBody = true
    /// The fields that `Connection` names, which end at this hop.
    var endingHere = FieldMask()

    func matches(_ slice: ByteRange, text: StaticString) -> Bool {
        FieldLines.equals(in: head.span, at: slice, text: text)
    }

    /// Writes all fields except those that end at this hop and those reserved for the gateway.
    func writeFields(to output: Buffer) {
        FieldLines.copy(fields, where: passedOn, of: head.span, to: output)
    }

    /// The same fields as values, for an observer.
    var keptFields: [UpstreamResponseField] {
        let chosen = passedOn
        return fields.indices.filter { chosen.contains($0) }.map { index in
            UpstreamResponseField(
                name: String(decoding: head[fields[index].name.range], as: UTF8.self),
                value: Array(head[fields[index].value.range]))
        }
    }

    private var passedOn: FieldMask {
        let bytes = head.span
        var chosen = FieldMask.all.subtracting(endingHere)
        for index in fields.indices {
            let name = fields[index].name
            if HopByHop.isHopByHop(name, of: bytes) || HopByHop.isReserved(name, of: bytes) {
                chosen.remove(index)
            }
        }
        return chosen
    }
}

/// Parses the head of an upstream's response as strictly as a request's: an ambiguous response could
/// deliver one caller's bytes to another. Source: RFC 9112 §4–6.
struct ResponseParser {
    /// Leaves room in one buffer for the fields that the gateway adds.
    private static let headBytes = 60 << 10
    private static let fieldCount = 128
    private static var headTooLarge: Refusal { Refusal(.upstreamFailed, detail: "its head is over 60 KiB") }
    private var scanner = FieldLines.EndScanner()

    /// Parses a head and returns its length in bytes; nil if more bytes are needed.
    mutating func parse(
        _ bytes: Span<UInt8>, answeringHEAD: Bool, into response: inout UpstreamResponse
    ) throws(Refusal) -> Int? {
        guard let length = try scanner.end(in: bytes) else {
            guard bytes.count <= ResponseParser.headBytes else { throw ResponseParser.headTooLarge }
            return nil
        }
        guard length <= ResponseParser.headBytes else { throw ResponseParser.headTooLarge }
        scanner = FieldLines.EndScanner()
        response.head.removeAll(keepingCapacity: true)
        response.fields.removeAll(keepingCapacity: true)
        bytes.extracting(0..<length).withUnsafeBufferPointer { response.head.append(contentsOf: $0) }
        let (start, minorVersion) = try parseStatusLine(bytes, into: &response)
        try FieldLines.parse(
            bytes, from: start, to: length, limit: ResponseParser.fieldCount, into: &response.fields)
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
        response.endingHere = named
        for field in response.fields {
            if response.matches(field.name, text: "content-length") {
                guard contentLength == nil,
                    let length = FieldLines.decimal(in: response.head.span, at: field.value)
                else {
                    throw Refusal(.malformed, detail: "its Content-Length is not one number")
                }
                contentLength = length
            } else if response.matches(field.name, text: "transfer-encoding") {
                guard !isChunked, FieldLines.equals(in: response.head.span, at: field.value, text: "chunked")
                else {
                    throw Refusal(.malformed, detail: "its Transfer-Encoding is not just chunked")
                }
                isChunked = true
            } else if response.matches(field.name, text: "connection") {
                if FieldLines.hasMember("close", in: field.value, of: response.head.span) {
                    keepsAlive = false
                }
            }
        }
        guard !(isChunked && contentLength != nil) else {
            throw Refusal(.malformed, detail: "it has both a Content-Length and a Transfer-Encoding")
        }
        // Source: RFC 9112 §6.1.
        guard !(isChunked && minorVersion == 0) else {
            throw Refusal(.malformed, detail: "it has a Transfer-Encoding in HTTP/1.0")
        }
        let announcesBody = isChunked || contentLength ?? 0 > 0
        guard response.status >= 200 || !announcesBody else {
            throw Refusal(.malformed, detail: "an interim answer announces a body")
        }
        let hasNoBody =
            answeringHEAD || response.status < 200 || response.status == 204 || response.status == 304
        response.declaredLength = contentLength
        response.hasBody = !hasNoBody
        response.framing =
            if hasNoBody { .none } else if isChunked { .chunked } else if let contentLength {
                contentLength == 0 ? .none : .length(contentLength)
            } else { .untilClose }
        // After a 204 that announces a body, the upstream may send that body, which would be read as the
        // next response. Source: RFC 9112 §6.3.
        let isSuspect = response.status == 204 && announcesBody
        response.keepsAlive = keepsAlive && response.framing != .untilClose && !isSuspect
    }
}
