import CountersignWire

/// What the signature says the body must be.
package enum BodyExpectation: Sendable {
    /// The scheme signs what it read from the body itself; nothing is left to check.
    case inSignature
    /// Nothing was signed of it, so it must be empty.
    case unsigned
    /// Every digest given must match. At least one is.
    case digests(sha256: ShortBytes?, sha512: ShortBytes?)
    /// An MD5, 16 bytes: auth-v1's `body_md5`.
    case md5(ShortBytes)
    /// The signer chose to leave the body open: sigv4's `UNSIGNED-PAYLOAD`. Only where the app's policy allows it.
    case leftOpen
    /// The scheme leaves bodies open, and clients in the field send them so: whatever comes is let through. Only where
    /// the scheme's ``Coverage`` lists the body as uncovered, or the app's policy allows it.
    case anything
}
