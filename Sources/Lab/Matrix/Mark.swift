/// The letter in a field of the printed table, the worst first: that of a column is the worst of its attacks'.
package enum Mark: String, Sendable, CaseIterable {
    case fell = "F"
    /// An error of the lab's. It stands before H: what was not tried has not held.
    case notStaged = "!"
    case held = "H"
    case notApplicable = "–"

    /// Of one cell; nil is one that was not run.
    package init(_ cell: Result<Cell, StageFault>?) {
        guard case .success(let cell)? = cell else {
            self = .notStaged
            return
        }
        switch cell.verdict {
        case .held: self = .held
        case .fell: self = .fell
        case .notApplicable: self = .notApplicable
        }
    }

    /// Nil where there are none.
    package static func worst(_ marks: some Sequence<Mark>) -> Mark? {
        let marks = Set(marks)
        return allCases.first { marks.contains($0) }
    }

    /// For a legend.
    package var meaning: String {
        switch self {
        case .fell: "fell: the attacker has shown that he got what he wanted"
        case .notStaged: "could not be staged: an error of the lab's, and no verdict"
        case .held: "held: the attack was carried out, and failed"
        case .notApplicable: "does not apply: there is nothing to attack"
        }
    }

    /// In a word or two.
    package var word: String {
        switch self {
        case .fell: "fell"
        case .notStaged: "not staged"
        case .held: "held"
        case .notApplicable: "does not apply"
        }
    }
}
