/// One thing that a port of the client must do, and how it is tried.
package struct ConformanceCase: Sendable {
    /// Lower-case words with hyphens.
    package let name: String
    /// Where docs/protocol.md says it: a heading.
    package let section: String
    /// What the port must do; a whole sentence.
    package let requirement: String
    /// The feature that a port without this part leaves out of its answer to `set-up`; nil where every port
    /// has the part.
    package let feature: String?
    let carryOut: @Sendable (Trial) throws(CaseFailure) -> Void

    init(
        _ name: String, section: String, requirement: String, feature: String? = nil,
        carryOut: @escaping @Sendable (Trial) throws(CaseFailure) -> Void
    ) {
        (self.name, self.section, self.requirement, self.feature) = (name, section, requirement, feature)
        self.carryOut = carryOut
    }

    /// All, in the order in which they are carried out: what later ones rest on comes first.
    package static let all: [ConformanceCase] =
        knownAnswers + signUps + logIns + calls + times + refreshes + sessionEnds + certificates + optional
        + pinManifests
}

/// What came of a case.
package enum CaseOutcome: Sendable {
    case passed
    case failed(CaseFailure)
}
