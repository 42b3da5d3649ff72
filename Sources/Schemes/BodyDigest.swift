import CountersignSeal
import CountersignWire

/// Checks a body against what was signed while it streams by. The last bytes must be held back until ``finish()``.
package struct BodyDigest: ~Copyable, Sendable {
    private let expectation: BodyExpectation
    private var sha256 = SHA256()
    private var sha512 = SHA512()
    private var md5 = MD5()
    private var hasBytes = false

    package init(_ expectation: BodyExpectation) { self.expectation = expectation }

    package mutating func update(_ bytes: borrowing Span<UInt8>) {
        if bytes.count > 0 { hasBytes = true }
        switch expectation {
        case .inSignature, .unsigned, .anything, .leftOpen: return
        case .digests(let short, let long):
            if short != nil { sha256.update(bytes) }
            if long != nil { sha512.update(bytes) }
        case .md5: md5.update(bytes)
        }
    }

    /// Throws `body-mismatch` where the body was another than the signed one.
    package consuming func finish() throws(Refusal) {
        switch expectation {
        case .inSignature, .anything, .leftOpen: return
        case .unsigned:
            if hasBytes { throw Refusal(.bodyMismatch, "a body that nothing signs") }
        case .digests(let short, let long):
            if let short { try BodyDigest.compare(short.span, sha256.finish().span, "sha-256") }
            if let long { try BodyDigest.compare(long.span, sha512.finish().span, "sha-512") }
        case .md5(let signed): try BodyDigest.compare(signed.span, md5.finish().span, "MD5")
        }
    }

    fileprivate static func compare(
        _ signed: borrowing Span<UInt8>, _ found: borrowing Span<UInt8>, _ name: StaticString
    ) throws(Refusal) {
        // Both are known to whoever sent the request, so the time this takes tells nothing.
        guard found.matches(signed) else {
            throw Refusal(.bodyMismatch, "the \(name) of the body is not the signed one")
        }
    }
}

extension BodyExpectation {
    /// Checks a body that is held whole.
    package func check(_ body: Span<UInt8>) throws(Refusal) {
        switch self {
        case .inSignature, .anything, .leftOpen: return
        case .unsigned:
            if body.count > 0 { throw Refusal(.bodyMismatch, "a body that nothing signs") }
        case .digests(let short, let long):
            if let short { try BodyDigest.compare(short.span, SHA256.digest(body).span, "sha-256") }
            if let long { try BodyDigest.compare(long.span, SHA512.digest(body).span, "sha-512") }
        case .md5(let signed):
            var md5 = MD5()
            md5.update(body)
            try BodyDigest.compare(signed.span, md5.finish().span, "MD5")
        }
    }
}
