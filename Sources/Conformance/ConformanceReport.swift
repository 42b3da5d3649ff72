import CountersignWire

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
