import CountersignCLI
import CountersignConformance
import CountersignLab
import CountersignWire

extension Command {
    static let conformance = Command(
        .conformance,
        positionals: [Positional(name: "COMMAND", presence: .remaining)],
        options: [
            .list("case", placeholder: "NAME", meaning: "carry out this case, or several, with commas"),
            .flag("keep-going", meaning: "carry out the rest after a case that failed"),
            .flag("list", meaning: "say which cases there are and what each wants, and carry out none"),
            .json,
        ],
        notes: """
            Starts an authority and gateway on loopback, in a temporary folder, behind a front that loses,
            repeats, alters and forges answers. For each case COMMAND is started anew, the driver of a port of
            the client: it reads one JSON object a line on standard input and answers each with one on \
            standard
            output (docs/conformance.md). What is judged is what the port sends, and what it reports. Progress
            goes to standard error.

            Exit status: 0 all cases held, 1 one failed, or could not be carried out. Parts that a port may
            leave out, and says it has not, are counted as not implemented; they fail nothing.

              countersign conformance -- python3 -m countersign_client.conformance
              countersign conformance --case lost-refresh-answer --json -- ./driver
            """
    ) { (run) throws(OperationalError) in
        let cases = try selectedCases(run.arguments)
        if run.arguments.has("list") {
            try run.print(.array(cases.map(\.json))) { ConformanceText.list(cases) }
            return .success
        }
        guard !run.arguments.remaining.isEmpty else {
            throw OperationalError(
                .usage, message: "COMMAND is missing: expected `-- COMMAND ARG…`, the driver of a port")
        }
        let binary = try CountersignBinary.installed()
        InterruptCleanup.install()
        defer { InterruptCleanup.removeLeftovers() }
        let report: ConformanceReport
        do throws(LabError) {
            let conformance = Conformance(
                binary, command: run.arguments.remaining, cases: cases)
            let persistence: Conformance.FailurePolicy =
                run.arguments.has("keep-going") ? .allCases : .untilFailure
            report = try conformance.run(persistence) {
                run.console.note(ConformanceText.line($0, outcome: $1))
            }
        } catch {
            throw OperationalError(.failed, message: "conformance: \(error)")
        }
        try run.print(report.json) { ConformanceText.sum(report) }
        return report.failed + report.notStaged == 0 ? .success : .failed
    }

    private static func selectedCases(_ arguments: Arguments) throws(OperationalError) -> [ConformanceCase] {
        let names = arguments.values("case").flatMap { $0.split(separator: ",").map(String.init) }
        let known = ConformanceCase.all.map(\.name)
        for name in names where !known.contains(name) {
            throw OperationalError(
                .usage,
                message:
                    "--case `\(name)`: no such case\(SpellingSuggestion.text(for: name, among: known)); "
                    + "--list has them"
            )
        }
        return names.isEmpty ? ConformanceCase.all : ConformanceCase.all.filter { names.contains($0.name) }
    }
}

/// Cases and what came of them, as text.
enum ConformanceText {
    static func line(_ one: ConformanceCase, outcome: CaseOutcome) -> String {
        switch outcome {
        case .passed: return "✓ \(one.name)"
        case .failed(let failure):
            switch failure.kind {
            case .deviation:
                return """
                    ✗ \(one.name)
                        \(one.requirement)
                        docs/protocol.md, "\(one.section)"
                        expected: \(failure.expectation)
                        observed: \(failure.observation)
                    """
            case .notImplemented: return "– \(one.name): not implemented: \(failure.observation)"
            case .notStaged: return "! \(one.name): could not be carried out: \(failure.observation)"
            }
        }
    }

    static func sum(_ report: ConformanceReport) -> String {
        var parts = [
            "\(report.passed) passed", "\(report.failed) failed", "\(report.notImplemented) not implemented",
        ]
        if report.notStaged > 0 { parts.append("\(report.notStaged) could not be carried out") }
        if report.notRun > 0 { parts.append("\(report.notRun) not carried out, for one before them failed") }
        return parts.joined(separator: ", ")
    }

    static func list(_ cases: [ConformanceCase]) -> String {
        cases.map { one in
            let optional = one.feature.map { " (optional: feature `\($0)`)" } ?? ""
            return "\(one.name)\(optional)\n    \(one.requirement)\n    docs/protocol.md, \"\(one.section)\""
        }.joined(separator: "\n")
    }
}
