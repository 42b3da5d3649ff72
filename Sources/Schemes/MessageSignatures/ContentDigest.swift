import CountersignSeal
import CountersignWire

/// `Content-Digest`: what the body must hash to. Source: RFC 9530 §2.
struct ContentDigest {
    var sha256: ShortBytes?
    var sha512: ShortBytes?

    /// Every digest that is known here; others are read over. A known one of the wrong length is refused.
    static func read(_ request: Request) throws(Refusal) -> ContentDigest {
        var digest = ContentDigest()
        for field in request.fields where field.known == .contentDigest {
            var reader = StructuredField(request.head.span.extracting(field.value.range))
            do throws(ParseError) {
                while let key = try reader.nextMember() { try digest.addMember(key, from: &reader) }
            } catch {
                throw Refusal(error, in: "Content-Digest")
            }
        }
        return digest
    }

    private mutating func addMember(_ key: ByteRange, from reader: inout StructuredField)
        throws(ParseError)
    {
        let name = reader.bytes.extracting(key.range)
        guard name.matches("sha-256") || name.matches("sha-512") else { return try reader.skipMemberValue() }
        guard reader.takeEquals(), case .bytes(let text) = try reader.bareItem() else {
            throw reader.error("expected a digest between colons")
        }
        let value = reader.bytes.extracting(text.range)
        if name.matches("sha-256") {
            guard sha256 == nil, let bytes = Base64.decodeShort(value, as: .standard), bytes.count == 32
            else {
                throw reader.error("expected one sha-256 of 32 bytes in Base64")
            }
            sha256 = bytes
        } else {
            guard sha512 == nil, let bytes = Base64.decodeShort(value, as: .standard), bytes.count == 64
            else {
                throw reader.error("expected one sha-512 of 64 bytes in Base64")
            }
            sha512 = bytes
        }
        try reader.skipParameters()
    }

    /// The field's value for a body: sha-256.
    static func value(for body: borrowing Span<UInt8>) -> String {
        let digest = SHA256.digest(body)
        return value(sha256: digest.span)
    }

    /// The same from the digest.
    static func value(sha256 digest: borrowing Span<UInt8>) -> String {
        "sha-256=:\(Base64.encode(digest, as: .standard)):"
    }
}
