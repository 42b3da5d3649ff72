import CountersignWire

extension SigV4Space {
    /// `AWS4-HMAC-SHA256 Credential=…, SignedHeaders=…, Signature=…`: the three parts, each once, in any order.
    mutating func readHeader(of request: Request) throws(Refusal) {
        reading = SigV4Reading()
        words.clear()
        guard let value = request.value(of: .authorization) else {
            throw Refusal(.malformed, "Authorization: expected once")
        }
        words.append(request.head.span.extracting(value.range))
        var position = try algorithmEnd(words.span)
        var credential: Slice?
        var fields: Slice?
        var signature: Slice?
        repeat {
            let part = SigV4Space.part(of: words.span, &position)
            guard let equals = SigV4Space.equals(in: words.span, part) else {
                throw Refusal(.malformed, "Authorization: expected NAME=VALUE at byte \(part.start)")
            }
            let content = Slice(equals + 1, Int(part.end))
            let name = words.span.extracting(Int(part.start)..<equals)
            switch name.count {
            case 10 where name.matches("Credential") && credential == nil: credential = content
            case 13 where name.matches("SignedHeaders") && fields == nil: fields = content
            case 9 where name.matches("Signature") && signature == nil: signature = content
            default:
                throw Refusal(
                    .malformed,
                    "Authorization: expected Credential, SignedHeaders and Signature, each once, "
                        + "not \(name.text) at byte \(part.start)")
            }
        } while position <= words.count
        guard let credential, let fields, let signature else {
            throw Refusal(.malformed, "Authorization: expected Credential, SignedHeaders and Signature")
        }
        try readCredential(credential)
        reading.signedFields = fields
        try readSignature(signature)
        try readFields()
        try readTime(of: request)
        try checkDay()
    }

    /// 64 lower-case hexadecimal digits.
    mutating func readSignature(_ slice: Slice) throws(Refusal) {
        guard let mac = Hex.decodeShort(words.span.extracting(slice.range)), mac.count == 32 else {
            throw Refusal(.malformed, "sigv4: expected a signature of 64 lower-case hexadecimal digits")
        }
        reading.signature = mac
    }

    /// `X-Amz-Date`; where it is absent, `Date`.
    private mutating func readTime(of request: Request) throws(Refusal) {
        let start = words.count
        let time: CivilTime
        if request.names.contains(.xAmzDate) {
            guard let value = request.value(of: .xAmzDate) else { throw Refusal(.malformed, "X-Amz-Date twice") }
            guard let read = CivilTime(basic: request.head.span.extracting(value.range)) else {
                throw Refusal(.malformed, "X-Amz-Date: expected a time such as 20260131T235959Z")
            }
            time = read
            try requireSigned("x-amz-date")
        } else if request.names.contains(.date) {
            guard let value = request.value(of: .date) else { throw Refusal(.malformed, "Date twice") }
            let text = request.head.span.extracting(value.range)
            guard let read = CivilTime(http: text) ?? CivilTime(basic: text) else {
                throw Refusal(.malformed, "Date: expected a time such as Sun, 06 Nov 1994 08:49:37 GMT")
            }
            time = read
            try requireSigned("date")
        } else {
            throw Refusal(.malformed, "sigv4: expected X-Amz-Date or Date")
        }
        time.appendBasic(to: &words)
        reading.timestamp = Slice(start, words.count)
        reading.seconds = time.seconds
    }

    private func algorithmEnd(_ text: Span<UInt8>) throws(Refusal) -> Int {
        var end = 0
        while end < text.count, text[end] != UInt8(ascii: " ") { end += 1 }
        guard text.extracting(0..<end).matches("AWS4-HMAC-SHA256") else {
            throw Refusal(.malformed, "Authorization: expected the algorithm AWS4-HMAC-SHA256")
        }
        while end < text.count, text[end] == UInt8(ascii: " ") { end += 1 }
        return end
    }

    /// The part up to the next comma, without the spaces around it; moves `position` behind the comma, and beyond the
    /// end after the last part.
    private static func part(of text: Span<UInt8>, _ position: inout Int) -> Slice {
        var start = position
        var end = start
        while end < text.count, text[end] != UInt8(ascii: ",") { end += 1 }
        position = end + 1
        while start < end, text[start] == UInt8(ascii: " ") { start += 1 }
        while end > start, text[end - 1] == UInt8(ascii: " ") { end -= 1 }
        return Slice(start, end)
    }

    private static func equals(in text: Span<UInt8>, _ part: Slice) -> Int? {
        for index in part.range where text[index] == UInt8(ascii: "=") { return index }
        return nil
    }
}
