import CountersignWire

/// What the signature says the body must be.
package enum BodyExpectation: Sendable {
    /// The scheme signs what it read from the body itself; nothing is left to check.
    case inSignature
    /// Nothing was signed of it, so it must be empty.
    case unsigned
    /// Every digest given must match. At least one is.
    case digests(sha256: ShortBytes?, sha512: ShortBytes?)
}
