import CountersignWire

/// One parameter of the query, decoded and encoded again in one way. Source: RFC 9421 §2.2.8; WHATWG URL §5.
///
/// Stricter than there: bytes that are no UTF-8, which a browser's reader replaces, and escapes that are none are
/// refused, since several such values would be signed alike.
enum QueryParameter {
    /// Appends the value of the one parameter whose encoded name is `name`. A name that comes twice is refused, as the RFC
    /// has it: which one would be meant?
    static func append(
        named name: borrowing Span<UInt8>, of request: Request, to text: inout ByteBuffer
    ) throws(Refusal) {
        guard let query = request.query else { throw missing(name) }
        let bytes = request.head.span.extracting(query.range)
        var reader = Form.Reader()
        var plain = ByteBuffer()
        var encoded = ByteBuffer()
        var isFound = false
        do throws(Form.Problem) {
            while let pair = try reader.next(in: bytes) {
                plain.clear()
                encoded.clear()
                try append(pair.name, of: bytes, to: &encoded, &plain)
                guard encoded.span.matches(name) else { continue }
                guard !isFound else { throw Form.Problem(at: Int(pair.name.start), expected: "this name once") }
                isFound = true
                plain.clear()
                try append(pair.value, of: bytes, to: &text, &plain)
            }
        } catch {
            throw Refusal(.badSignature, "@query-param: expected \(error.expected) at byte \(error.at) of the query")
        }
        guard isFound else { throw missing(name) }
    }

    private static func append(
        _ raw: Slice, of bytes: borrowing Span<UInt8>, to text: inout ByteBuffer, _ plain: inout ByteBuffer
    ) throws(Form.Problem) {
        _ = try Form.decode(raw, of: bytes, into: &plain)
        guard plain.span.isUTF8 else { throw Form.Problem(at: Int(raw.start), expected: "UTF-8") }
        for index in 0..<plain.count { Percent.append(form: plain.span[index], to: &text) }
    }

    private static func missing(_ name: borrowing Span<UInt8>) -> Refusal {
        Refusal(.badSignature, "the signature covers the query parameter \(name.text), which the request does not have")
    }
}

extension Span<UInt8> {
    /// Whether the bytes are well-formed UTF-8.
    fileprivate var isUTF8: Bool {
        var isPlain = true
        for index in 0..<count where self[index] >= 0x80 { isPlain = false }
        return isPlain || firstIllFormedUTF8 == nil
    }
}
