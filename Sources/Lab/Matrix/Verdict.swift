/// What came of one attack on one scheme.
package enum Verdict: String, Sendable, CaseIterable {
    /// The attack was carried out, and failed.
    case held = "H"
    /// The attack was carried out, and the attacker has what he wanted.
    case fell = "F"
    /// There is nothing to attack: no password to guess, no TLS to take apart.
    case notApplicable = "–"
}
