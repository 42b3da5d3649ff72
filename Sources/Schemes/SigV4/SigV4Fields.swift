import CountersignWire

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

extension SigV4Buffers {
    private static let mostFields = 64

    /// The list of signed fields: names in lower case, sorted, none twice.
    mutating func readFields() throws(Refusal) {
        names.removeAll(keepingCapacity: true)
        let end = Int(authorization.signedFields.end)
        var start = Int(authorization.signedFields.start)
        while start <= end {
            var stop = start
            while stop < end, words.span[stop] != UInt8(ascii: ";") { stop += 1 }
            let name = ByteRange(from: start, to: stop)
            guard SigV4Buffers.isFieldName(words.span.extracting(name.range)) else {
                throw Refusal(
                    .malformed, detail: "SignedHeaders: expected names in lower case, joined by `;`")
            }
            if let last = names.last, !SigV4Buffers.isOrdered(last.name, before: name, in: words.span) {
                throw Refusal(.malformed, detail: "SignedHeaders: expected each name once, in order")
            }
            guard names.count < SigV4Buffers.mostFields else {
                throw Refusal(
                    .malformed, detail: "SignedHeaders: more than \(SigV4Buffers.mostFields) names")
            }
            names.append(SignedField(name: name))
            start = stop + 1
        }
        try requireSigned("host")
    }

    func requireSigned(_ name: StaticString) throws(Refusal) {
        guard isSigned(name) else {
            throw Refusal(.badSignature, detail: "the signature does not cover \(name)")
        }
    }

    func isSigned(_ name: StaticString) -> Bool {
        for field in names where words.span.extracting(field.name.range).matches(name) { return true }
        return false
    }

    /// Finds the lines of each signed field, as a mask over the request's fields. Whatever AWS's own fields
    /// say must be signed; all others that are not are held back from the backend, and need not be.
    mutating func resolveFields(of request: Request) throws(Refusal) -> FieldMask {
        guard request.fields.count <= FieldSet.limit else {
            throw Refusal(.malformed, detail: "more than 128 fields")
        }
        var mask = FieldMask()
        for index in names.indices {
            let name = names[index].name
            for (line, field) in request.fields.enumerated() where field.name.count == name.count {
                guard
                    request.head.span.extracting(field.name.range).matches(words.span.extracting(name.range))
                else {
                    continue
                }
                if names[index].lines == 0 { names[index].firstLine = line }
                names[index].lines += 1
                mask.insert(line)
            }
            guard names[index].lines > 0 else {
                let name = words.span.extracting(name.range).text
                throw Refusal(
                    .badSignature, detail: "the signature covers \(name), which the request does not have")
            }
        }
        for (line, field) in request.fields.enumerated() where !mask.contains(line) {
            let name = request.head.span.extracting(field.name.range)
            if name.count >= 6, name.extracting(0..<6).matches("x-amz-") {
                throw Refusal(
                    .badSignature, detail: "the signature does not cover \(name.text), which is sent")
            }
        }
        return mask
    }

    /// `x-amz-content-sha256`, or what its absence means.
    mutating func readPayload(of request: Request) throws(Refusal) -> BodyExpectation {
        guard request.names.contains(.xAmzContentSHA256) else {
            if authorization.form == .query, isForS3 {
                authorization.payload = .unsigned
                return .leftOpen
            }
            authorization.payload = .body
            guard request.bodyState != .streaming else {
                throw Refusal(
                    .tooLarge,
                    detail: "sigv4 without x-amz-content-sha256 signs the body, which is too large to be held"
                )
            }
            return .inSignature
        }
        guard let value = request.value(of: .xAmzContentSHA256) else {
            throw Refusal(.malformed, detail: "x-amz-content-sha256 twice")
        }
        authorization.payload = .field(value)
        let text = request.head.span.extracting(value.range)
        if text.matches("UNSIGNED-PAYLOAD") { return .leftOpen }
        if text.count >= 10, text.extracting(0..<10).matches("STREAMING-") {
            throw Refusal(
                .malformed,
                detail:
                    "x-amz-content-sha256: bodies that are signed in chunks are not read here; "
                    + "expected the SHA-256 of the whole"
            )
        }
        guard let digest = Hex.decodeShort(text), digest.count == 32 else {
            throw Refusal(
                .malformed, detail: "x-amz-content-sha256: expected 64 lower-case hexadecimal digits")
        }
        return .digests(sha256: digest, sha512: nil)
    }

    /// `token` without upper case. Source: RFC 9110 §5.6.2.
    private static func isFieldName(_ text: Span<UInt8>) -> Bool {
        guard text.count > 0, text.count <= 128 else { return false }
        for index in 0..<text.count {
            let byte = text[index]
            let isLower = byte >= UInt8(ascii: "a") && byte <= UInt8(ascii: "z")
            guard isLower || ASCII.isDigit(byte) || isMark(byte) else { return false }
        }
        return true
    }

    private static func isMark(_ byte: UInt8) -> Bool {
        let marks: StaticString = "!#$%&'*+-.^_`|~"
        for index in 0..<marks.utf8CodeUnitCount where marks.utf8Start[index] == byte { return true }
        return false
    }

    private static func isOrdered(_ left: ByteRange, before right: ByteRange, in text: Span<UInt8>) -> Bool {
        text.extracting(left.range).isBefore(text.extracting(right.range))
    }
}

extension Span<UInt8> {
    /// Ordered as bytes are, the shorter of two that begin alike first.
    func isBefore(_ other: Span<UInt8>) -> Bool {
        let shared = Swift.min(count, other.count)
        let order = withUnsafeBufferPointer { left in
            other.withUnsafeBufferPointer { right in
                guard shared > 0, let left = left.baseAddress, let right = right.baseAddress else {
                    return Int32(0)
                }
                return memcmp(left, right, shared)
            }
        }
        return order == 0 ? count < other.count : order < 0
    }
}
