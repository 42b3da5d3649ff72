import CountersignWire

extension SigV4Buffers {
    /// The longest that AWS lets a presigned URL live: a week, in seconds.
    private static let longestLifetime: Int64 = 604_800

    /// `X-Amz-Algorithm`, `-Credential`, `-Date`, `-Expires`, `-SignedHeaders` and `-Signature`, each once.
    mutating func readQuery(of request: Request) throws(Refusal) {
        authorization = SigV4Authorization()
        authorization.form = .query
        words.clear()
        guard let query = request.query else { throw Refusal(.malformed, detail: "sigv4: expected a query") }
        guard !request.names.contains(.xAmzDate) else {
            throw Refusal(.malformed, detail: "X-Amz-Date in the query and as a field; expected one of them")
        }
        let found = try PresignedParameters(request.head.span.extracting(query.range), words: &words)
        guard let algorithm = found.algorithm, let credential = found.credential, let date = found.date,
            let expires = found.expires, let fields = found.signedFields, let signature = found.signature
        else {
            throw Refusal(
                .malformed,
                detail:
                    "presigned URL: expected X-Amz-Algorithm, -Credential, -Date, -Expires, "
                    + "-SignedHeaders and -Signature"
            )
        }
        guard words.span.extracting(algorithm.range).matches("AWS4-HMAC-SHA256") else {
            throw Refusal(.malformed, detail: "X-Amz-Algorithm: expected AWS4-HMAC-SHA256")
        }
        guard let time = CivilTime(basic: words.span.extracting(date.range)) else {
            throw Refusal(.malformed, detail: "X-Amz-Date: expected a time such as 20260131T235959Z")
        }
        try readCredential(credential)
        authorization.signedFields = fields
        authorization.timestamp = date
        authorization.seconds = time.seconds
        authorization.lifetime = try SigV4Buffers.lifetime(words.span.extracting(expires.range))
        try readSignature(signature)
        try readFields()
        try checkDay()
        // Nor can it be signed in the header form, then, which must sign a time: no string to sign serves
        // both, and no presigned URL can outlive its own Expires as the other form.
        guard !isSigned("date") else {
            throw Refusal(
                .malformed, detail: "presigned URL: its time is X-Amz-Date; expected no signed Date beside it"
            )
        }
    }

    /// 1 to 604800 in decimal, without leading zeros.
    private static func lifetime(_ text: Span<UInt8>) throws(Refusal) -> Int64 {
        var seconds: Int64 = 0
        var isNumber = text.count >= 1 && text.count <= 6 && text[0] != UInt8(ascii: "0")
        if isNumber {
            for index in 0..<text.count {
                isNumber = isNumber && ASCII.isDigit(text[index])
                seconds = seconds * 10 + Int64(text[index] & 15)
            }
        }
        guard isNumber, seconds <= longestLifetime else {
            throw Refusal(.malformed, detail: "X-Amz-Expires: expected 1 to \(longestLifetime) seconds")
        }
        return seconds
    }
}

/// The values of a presigned URL's own parameters, decoded into the buffer they were read with.
private struct PresignedParameters {
    var algorithm: ByteRange?
    var credential: ByteRange?
    var date: ByteRange?
    var expires: ByteRange?
    var signedFields: ByteRange?
    var signature: ByteRange?

    init(_ text: Span<UInt8>, words: inout ByteBuffer) throws(Refusal) {
        var reader = Form.Reader()
        do throws(ParseError) {
            while let pair = try reader.next(in: text) {
                let name = text.extracting(pair.name.range)
                guard name.count > 6, name.extracting(0..<6).matches("X-Amz-") else { continue }
                try addParameter(name.extracting(6..<name.count), pair: pair, text: text, words: &words)
            }
        } catch {
            throw Refusal(.malformed, detail: "query: \(error)")
        }
    }

    private mutating func addParameter(
        _ name: Span<UInt8>, pair: Form.Pair, text: Span<UInt8>, words: inout ByteBuffer
    ) throws(ParseError) {
        let place: WritableKeyPath<PresignedParameters, ByteRange?>
        switch name.count {
        case 4 where name.matches("Date"): place = \.date
        case 7 where name.matches("Expires"): place = \.expires
        case 9 where name.matches("Algorithm"): place = \.algorithm
        case 9 where name.matches("Signature"): place = \.signature
        case 10 where name.matches("Credential"): place = \.credential
        case 13 where name.matches("SignedHeaders"): place = \.signedFields
        default: return  // An unknown X-Amz- parameter, signed like any other parameter.
        }
        guard self[keyPath: place] == nil else {
            throw ParseError(offset: Int(pair.name.start), reason: "expected X-Amz-\(name.text) once")
        }
        self[keyPath: place] = try Form.decode(pair.value, of: text, into: &words)
    }
}
