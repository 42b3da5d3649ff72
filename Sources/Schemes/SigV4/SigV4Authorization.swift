import CountersignWire

/// Where a request bears a signature, read or not.
enum SigV4Location {
    /// Any version of AWS's: one that is not spoken here is refused by name.
    static func header(of request: Request) -> Bool {
        guard request.names.contains(.authorization) else { return false }
        for field in request.fields where field.known == .authorization {
            let value = request.head.span.extracting(field.value.range)
            if value.count >= 5, value.extracting(0..<5).matches("AWS4-") { return true }
        }
        return false
    }

    static func query(of request: Request) -> Bool {
        guard let query = request.query else { return false }
        let text = request.head.span.extracting(query.range)
        var start = 0
        while let index = text.firstIndex(of: UInt8(ascii: "X"), from: start) {
            let isAtStart = index == 0 || text[index - 1] == UInt8(ascii: "&")
            if isAtStart, isTelling(text.extracting(index..<text.count)) { return true }
            start = index + 1
        }
        return false
    }

    private static func isTelling(_ rest: Span<UInt8>) -> Bool {
        let count = 16
        guard rest.count >= count else { return false }
        let start = rest.extracting(0..<count)
        return start.matches("X-Amz-Signature=") || start.matches("X-Amz-Algorithm=")
    }
}

extension SigV4Buffers {
    /// `AWS4-HMAC-SHA256 Credential=…, SignedHeaders=…, Signature=…`: the three parts, each once, in any
    /// order.
    mutating func readHeader(of request: Request) throws(Refusal) {
        authorization = SigV4Authorization()
        words.clear()
        guard let value = request.value(of: .authorization) else {
            throw Refusal(.malformed, detail: "Authorization: expected once")
        }
        words.append(request.head.span.extracting(value.range))
        var position = try algorithmEnd(words.span)
        var credential: ByteRange?
        var fields: ByteRange?
        var signature: ByteRange?
        repeat {
            let part = SigV4Buffers.part(of: words.span, position: &position)
            guard let equals = SigV4Buffers.equalsSign(in: words.span, part: part) else {
                throw Refusal(.malformed, detail: "Authorization: expected NAME=VALUE at byte \(part.start)")
            }
            let content = ByteRange(from: equals + 1, to: Int(part.end))
            let name = words.span.extracting(Int(part.start)..<equals)
            switch name.count {
            case 10 where name.matches("Credential") && credential == nil: credential = content
            case 13 where name.matches("SignedHeaders") && fields == nil: fields = content
            case 9 where name.matches("Signature") && signature == nil: signature = content
            default:
                throw Refusal(
                    .malformed,
                    detail: "Authorization: expected Credential, SignedHeaders and Signature, each once, "
                        + "not \(name.text) at byte \(part.start)")
            }
        } while position <= words.count
        guard let credential, let fields, let signature else {
            throw Refusal(
                .malformed, detail: "Authorization: expected Credential, SignedHeaders and Signature")
        }
        try readCredential(credential)
        authorization.signedFields = fields
        try readSignature(signature)
        try readFields()
        try readTime(of: request)
        try checkDay()
    }

    /// 64 lower-case hexadecimal digits.
    mutating func readSignature(_ slice: ByteRange) throws(Refusal) {
        guard let mac = Hex.decodeShort(words.span.extracting(slice.range)), mac.count == 32 else {
            throw Refusal(
                .malformed, detail: "sigv4: expected a signature of 64 lower-case hexadecimal digits")
        }
        authorization.signature = mac
    }

    /// `X-Amz-Date`; where it is absent, `Date`.
    private mutating func readTime(of request: Request) throws(Refusal) {
        let start = words.count
        let time: CivilTime
        if request.names.contains(.xAmzDate) {
            guard let value = request.value(of: .xAmzDate) else {
                throw Refusal(.malformed, detail: "X-Amz-Date twice")
            }
            guard let read = CivilTime(basic: request.head.span.extracting(value.range)) else {
                throw Refusal(.malformed, detail: "X-Amz-Date: expected a time such as 20260131T235959Z")
            }
            time = read
            try requireSigned("x-amz-date")
        } else if request.names.contains(.date) {
            guard let value = request.value(of: .date) else {
                throw Refusal(.malformed, detail: "Date twice")
            }
            let text = request.head.span.extracting(value.range)
            guard let read = CivilTime(http: text) ?? CivilTime(basic: text) else {
                throw Refusal(
                    .malformed, detail: "Date: expected a time such as Sun, 06 Nov 1994 08:49:37 GMT")
            }
            time = read
            try requireSigned("date")
        } else {
            throw Refusal(.malformed, detail: "sigv4: expected X-Amz-Date or Date")
        }
        time.appendBasic(to: &words)
        authorization.timestamp = ByteRange(from: start, to: words.count)
        authorization.seconds = time.seconds
    }

    private func algorithmEnd(_ text: Span<UInt8>) throws(Refusal) -> Int {
        var end = 0
        while end < text.count, text[end] != UInt8(ascii: " ") { end += 1 }
        guard text.extracting(0..<end).matches("AWS4-HMAC-SHA256") else {
            throw Refusal(.malformed, detail: "Authorization: expected the algorithm AWS4-HMAC-SHA256")
        }
        while end < text.count, text[end] == UInt8(ascii: " ") { end += 1 }
        return end
    }

    /// The part up to the next comma, without the spaces around it; moves `position` behind the comma, and
    /// beyond the end after the last part.
    private static func part(of text: Span<UInt8>, position: inout Int) -> ByteRange {
        var start = position
        var end = start
        while end < text.count, text[end] != UInt8(ascii: ",") { end += 1 }
        position = end + 1
        while start < end, text[start] == UInt8(ascii: " ") { start += 1 }
        while end > start, text[end - 1] == UInt8(ascii: " ") { end -= 1 }
        return ByteRange(from: start, to: end)
    }

    private static func equalsSign(in text: Span<UInt8>, part: ByteRange) -> Int? {
        for index in part.range where text[index] == UInt8(ascii: "=") { return index }
        return nil
    }
}
