import CountersignSeal
import CountersignWire

/// What the signature says the body must be.
package enum BodyExpectation: Sendable {
    /// The scheme signs the values that it read from the body; nothing is left to check.
    case inSignature
    /// The signature covers no body, so the body must be empty.
    case unsigned
    /// Every given digest must match; at least one is given.
    case digests(sha256: ShortBytes?, sha512: ShortBytes?)
    /// An MD5, 16 bytes: auth-v1's `body_md5`.
    case md5(ShortBytes)
    /// The signer left the body unsigned: sigv4's `UNSIGNED-PAYLOAD`. Only if the app's policy allows it.
    case leftOpen
    /// The scheme does not sign bodies, and deployed clients send them unsigned: any body passes. Only if
    /// the scheme's ``Coverage`` lists the body as uncovered, or the app's policy allows it.
    case anything
}

/// Checks a body against its expectation while it streams. Hold back the last bytes until ``finish()`` has
/// returned.
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

    /// Throws `body-mismatch` if the body is not the signed one.
    package consuming func finish() throws(Refusal) {
        switch expectation {
        case .inSignature, .anything, .leftOpen: return
        case .unsigned:
            if hasBytes { throw Refusal(.bodyMismatch, detail: "a body that nothing signs") }
        case .digests(let short, let long):
            if let short {
                try BodyDigest.compare(signed: short.span, found: sha256.finish().span, name: "sha-256")
            }
            if let long {
                try BodyDigest.compare(signed: long.span, found: sha512.finish().span, name: "sha-512")
            }
        case .md5(let signed):
            try BodyDigest.compare(signed: signed.span, found: md5.finish().span, name: "MD5")
        }
    }

    fileprivate static func compare(
        signed: borrowing Span<UInt8>, found: borrowing Span<UInt8>, name: StaticString
    ) throws(Refusal) {
        // The sender of the request knows both digests, so the time of the comparison reveals nothing.
        guard found.matches(signed) else {
            throw Refusal(.bodyMismatch, detail: "the \(name) of the body is not the signed one")
        }
    }
}

extension BodyExpectation {
    /// Checks a body that is buffered completely.
    package func check(_ body: Span<UInt8>) throws(Refusal) {
        switch self {
        case .inSignature, .anything, .leftOpen: return
        case .unsigned:
            if body.count > 0 { throw Refusal(.bodyMismatch, detail: "a body that nothing signs") }
        case .digests(let short, let long):
            if let short {
                try BodyDigest.compare(signed: short.span, found: SHA256.digest(body).span, name: "sha-256")
            }
            if let long {
                try BodyDigest.compare(signed: long.span, found: SHA512.digest(body).span, name: "sha-512")
            }
        case .md5(let signed):
            var md5 = MD5()
            md5.update(body)
            try BodyDigest.compare(signed: signed.span, found: md5.finish().span, name: "MD5")
        }
    }
}
