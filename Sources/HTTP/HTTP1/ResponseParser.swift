import CountersignWire

/// The head of an upstream's answer. Bytes and offsets like ``Request``; names are lower-cased.
struct UpstreamResponse {
    enum Framing: Equatable {
        case none
        case length(Int)
        case chunked
        /// The body ends where the connection does. Source: RFC 9112 §6.3, the last case.
        case untilClose
    }

    var head: [UInt8] = []
    var status = 0
    var fields: [Request.Field] = []
    var framing = Framing.none
    var keepsAlive = true
    /// What the head says of the length, also where no body follows.
    var declaredLength: Int?
    /// False for an answer to HEAD, 204 and 304.
    var hasBody = true
    /// The fields that `Connection` takes off at this hop.
    var endingHere = FieldMask()

    func matches(_ slice: Slice, _ text: StaticString) -> Bool {
        FieldLines.equals(head.span, slice, text)
    }

    /// All fields but those that end at this hop, and those that only we say.
    func writeFields(to output: Buffer) { FieldLines.copy(fields, where: passedOn, of: head.span, to: output) }

    /// The same, to be kept.
    var keptFields: [AnswerField] {
        let chosen = passedOn
        return fields.indices.filter { chosen.contains($0) }.map { index in
            AnswerField(
                name: String(decoding: head[fields[index].name.range], as: UTF8.self),
                value: Array(head[fields[index].value.range]))
        }
    }

    private var passedOn: FieldMask {
        let bytes = head.span
        var chosen = FieldMask.all.subtracting(endingHere)
        for index in fields.indices {
            let name = fields[index].name
            if HopByHop.isOne(name, of: bytes) || HopByHop.isOurs(name, of: bytes) { chosen.remove(index) }
        }
        return chosen
    }
}

/// Reads the head of an upstream's answer, as strictly as a request's: an upstream that can be read two ways could be
/// made to answer one caller with another's bytes. Source: RFC 9112 §4–6.
struct ResponseParser {
    /// Leaves room in one buffer for what we add.
    private static let headBytes = 60 << 10
    private static let fieldCount = 128
    private static var headTooLarge: Refusal { Refusal(.upstreamFailed, "its head is over 60 KiB") }
    private var scanner = FieldLines.EndScanner()

    /// Bytes of the head once it is all there; nil where more are needed.
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
        try FieldLines.parse(bytes, from: start, to: length, limit: ResponseParser.fieldCount, into: &response.fields)
        try interpret(&response, minorVersion: minorVersion, answeringHEAD: answeringHEAD)
        return length
    }

    /// `HTTP/1.x SP 3DIGIT [SP reason] CRLF`; answers where the fields begin, and x.
    private func parseStatusLine(
        _ bytes: Span<UInt8>, into response: inout UpstreamResponse
    ) throws(Refusal) -> (fields: Int, minorVersion: Int) {
        let prefix: StaticString = "HTTP/1."
        var position = 0
        while bytes[position] != Octet.carriageReturn { position += 1 }
        let end = position
        guard end >= 12, FieldLines.starts(bytes, with: prefix), bytes[end + 1] == Octet.lineFeed else {
            throw Refusal(.malformed, "not an HTTP/1.1 status line")
        }
        let minor = bytes[7]
        guard minor == UInt8(ascii: "0") || minor == UInt8(ascii: "1"), bytes[8] == Octet.space,
            let status = FieldLines.decimal(bytes, Slice(9, 12)), status >= 100, status < 600,
            end == 12 || bytes[12] == Octet.space
        else { throw Refusal(.malformed, "not an HTTP/1.1 status line") }
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
            if response.matches(field.name, "content-length") {
                guard contentLength == nil, let length = FieldLines.decimal(response.head.span, field.value) else {
                    throw Refusal(.malformed, "its Content-Length is not one number")
                }
                contentLength = length
            } else if response.matches(field.name, "transfer-encoding") {
                guard !isChunked, FieldLines.equals(response.head.span, field.value, "chunked") else {
                    throw Refusal(.malformed, "its Transfer-Encoding is not just chunked")
                }
                isChunked = true
            } else if response.matches(field.name, "connection") {
                if FieldLines.hasMember("close", in: field.value, of: response.head.span) { keepsAlive = false }
            }
        }
        guard !(isChunked && contentLength != nil) else {
            throw Refusal(.malformed, "it has both a Content-Length and a Transfer-Encoding")
        }
        // Source: RFC 9112 §6.1.
        guard !(isChunked && minorVersion == 0) else {
            throw Refusal(.malformed, "it has a Transfer-Encoding in HTTP/1.0")
        }
        let announcesBody = isChunked || contentLength ?? 0 > 0
        guard response.status >= 200 || !announcesBody else {
            throw Refusal(.malformed, "an interim answer announces a body")
        }
        let hasNoBody = answeringHEAD || response.status < 200 || response.status == 204 || response.status == 304
        response.declaredLength = contentLength
        response.hasBody = !hasNoBody
        response.framing =
            if hasNoBody { .none } else if isChunked { .chunked } else if let contentLength {
                contentLength == 0 ? .none : .length(contentLength)
            } else { .untilClose }
        // A 204 that announces a body may send one, which would stand before the next answer. Source: RFC 9112 §6.3.
        let isSuspect = response.status == 204 && announcesBody
        response.keepsAlive = keepsAlive && response.framing != .untilClose && !isSuspect
    }
}
