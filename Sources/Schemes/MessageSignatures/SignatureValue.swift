import CountersignWire

extension MessageSignatures {
    /// The signature of that label: a short one is answered, a longer one is left in `workspace.decoded`, at the slice.
    /// Source: RFC 9421 §4.2.
    static func signature(
        labelled label: Slice, in message: Request, _ workspace: inout Workspace
    ) throws(Refusal) -> (short: ShortBytes, long: Slice?) {
        var found: (short: ShortBytes, long: Slice?)?
        let bytes = message.head.span
        let label = bytes.extracting(label.range)
        for field in message.fields where field.known == .signature {
            var reader = StructuredField(bytes.extracting(field.value.range))
            do throws(StructuredField.Problem) {
                while let key = try reader.nextMember() {
                    guard reader.bytes.extracting(key.range).matches(label) else {
                        try reader.skipMemberValue()
                        continue
                    }
                    guard found == nil else { throw reader.problem("each label once") }
                    guard reader.takeEquals(), case .bytes(let text) = try reader.bareItem(),
                        let value = decode(reader.bytes.extracting(text.range), &workspace.decoded)
                    else {
                        throw reader.problem(
                            "a signature of at most \(Claim.longestSignature) bytes in Base64 between colons")
                    }
                    try reader.skipParameters()
                    found = value
                }
            } catch {
                throw Refusal(error, in: "Signature")
            }
        }
        guard let found else {
            throw Refusal(.malformed, "Signature: expected a member \"\(label.text)\", which Signature-Input names")
        }
        return found
    }

    private static func decode(
        _ text: borrowing Span<UInt8>, _ buffer: inout ByteBuffer
    ) -> (short: ShortBytes, long: Slice?)? {
        if text.count <= (ShortBytes.longest + 2) / 3 * 4, let short = Base64.decodeShort(text, .standard) {
            return (short, nil)
        }
        buffer.clear()
        guard Base64.decode(text, .standard, into: &buffer, limit: Claim.longestSignature) else { return nil }
        return (ShortBytes(), Slice(0, buffer.count))
    }
}
