import CountersignSeal

extension Password {
    /// Where the password lies in the group before it is blinded: all that who guesses passwords can compute of a login without asking
    /// the server. Nil where it hashes to the identity. Source: RFC 9497 §3.3.1.
    package var element: Ristretto255.Element? { HashToGroup.element(bytes) }
}
