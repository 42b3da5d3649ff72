/// Why a case did not hold.
package struct CaseFailure: Error, Sendable {
    package enum Kind: Sendable {
        /// The port does something else than the protocol says.
        case deviation
        /// The port says that it does not have this.
        case notImplemented
        /// The case could not be carried out, for a reason that is not the port's.
        case notStaged
    }

    package let kind: Kind
    /// What the protocol says; a whole sentence.
    package let expectation: String
    /// What the port did instead.
    package let observation: String

    init(_ expectation: String, observed observation: String) {
        (kind, self.expectation, self.observation) = (.deviation, expectation, observation)
    }

    private init(kind: Kind, expectation: String, observation: String) {
        (self.kind, self.expectation, self.observation) = (kind, expectation, observation)
    }

    static func notImplemented(_ what: String) -> CaseFailure {
        CaseFailure(kind: .notImplemented, expectation: "", observation: what)
    }

    static func notStaged(_ why: String) -> CaseFailure {
        CaseFailure(kind: .notStaged, expectation: "", observation: why)
    }
}
