// Key files, and structured fields that are written again.
import CountersignSeal
import CountersignWire

/// A PEM file: an accepted key is written as a key that parses again.
@Sendable func fuzzPEM(_ bytes: Span<UInt8>) {
    for algorithm in [nil, KeyAlgorithm.rsaPSS] {
        guard let key = try? PublicKey(pem: bytes, algorithm: algorithm) else { continue }
        let der = key.der
        guard let again = try? PublicKey(der: der.span, algorithm: key.algorithm) else {
            // OpenSSL checks an RSA modulus with random numbers, so that an invalid modulus may pass once and
            // fail the next time.
            precondition(key.algorithm == .rsaPSS, "a key that is read cannot be written")
            continue
        }
        precondition(again.der == der && again.algorithm == key.algorithm)
        precondition(key.verify(bytes, of: bytes) == .different)
    }
}

/// A field's value: the canonical form is stable when it is parsed again, and both have the same members.
@Sendable func fuzzCanonical(_ bytes: Span<UInt8>) {
    for kind in [StructuredField.Kind.item, .list, .dictionary] {
        var once = ByteBuffer()
        guard (try? StructuredField.append(canonical: bytes, as: kind, to: &once)) != nil else { continue }
        var twice = ByteBuffer()
        guard (try? StructuredField.append(canonical: once.span, as: kind, to: &twice)) != nil else {
            preconditionFailure("what was written is not read")
        }
        precondition(once.span.matches(twice.span))
        guard kind == .dictionary else { continue }
        let key: [UInt8] = [UInt8(ascii: "a")]
        var left = ByteBuffer()
        var right = ByteBuffer()
        let inFirst = try? StructuredField.append(member: key.span, of: bytes, to: &left)
        let inSecond = try? StructuredField.append(member: key.span, of: once.span, to: &right)
        precondition(inFirst == inSecond && left.span.matches(right.span))
    }
}
