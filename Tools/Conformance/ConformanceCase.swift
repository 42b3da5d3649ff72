import CountersignWire

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
    let body: @Sendable (Trial) throws(ConformanceError) -> Void

    init(
        _ name: String, section: String, requirement: String, feature: String? = nil,
        carryOut: @escaping @Sendable (Trial) throws(ConformanceError) -> Void
    ) {
        (self.name, self.section, self.requirement, self.feature) = (name, section, requirement, feature)
        self.body = carryOut
    }

    /// All, in the order in which they are carried out: what later ones rest on comes first.
    package static let all: [ConformanceCase] =
        knownAnswers + signUps + logIns + calls + times + refreshes + sessionEnds + certificates + optional
        + pinManifests
}

/// What came of a case.
package enum CaseOutcome: Sendable {
    case passed
    case failed(ConformanceError)
}

/// Why a case did not hold.
package struct ConformanceError: Error, Sendable {
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

    static func notImplemented(_ what: String) -> ConformanceError {
        ConformanceError(kind: .notImplemented, expectation: "", observation: what)
    }

    static func notStaged(_ why: String) -> ConformanceError {
        ConformanceError(kind: .notStaged, expectation: "", observation: why)
    }
}

/// What came of a run.
package struct ConformanceReport: Sendable {
    /// In the order in which they were carried out.
    package var results: [(case: ConformanceCase, outcome: CaseOutcome)] = []
    /// Cases that were left out because one before them failed.
    package var notRun = 0

    package var passed: Int { results.count { $0.outcome.word == "passed" } }
    package var failed: Int { results.count { $0.outcome.word == "failed" } }
    package var notImplemented: Int { results.count { $0.outcome.word == "not-implemented" } }
    package var notStaged: Int { results.count { $0.outcome.word == "not-staged" } }

    package var json: JSONValue {
        [
            "passed": .integer(Int64(passed)), "failed": .integer(Int64(failed)),
            "not_implemented": .integer(Int64(notImplemented)), "not_staged": .integer(Int64(notStaged)),
            "not_run": .integer(Int64(notRun)), "cases": .array(results.map { $0.case.json($0.outcome) }),
        ]
    }
}

extension CaseOutcome {
    /// As the report has it.
    package var word: String {
        guard case .failed(let failure) = self else { return "passed" }
        return switch failure.kind {
        case .deviation: "failed"
        case .notImplemented: "not-implemented"
        case .notStaged: "not-staged"
        }
    }
}

extension ConformanceCase {
    /// What it is, without an outcome.
    package var json: JSONValue { .object(members) }

    private var members: [(name: String, value: JSONValue)] {
        [
            (name: "name", value: .string(name)), (name: "section", value: .string(section)),
            (name: "requirement", value: .string(requirement)), (name: "feature", value: .optional(feature)),
        ]
    }

    fileprivate func json(_ outcome: CaseOutcome) -> JSONValue {
        var members = members + [(name: "outcome", value: .string(outcome.word))]
        if case .failed(let failure) = outcome {
            members += [
                (name: "expected", value: .string(failure.expectation)),
                (name: "observed", value: .string(failure.observation)),
            ]
        }
        return .object(members)
    }
}
