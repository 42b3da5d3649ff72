import CountersignLab
import CountersignWire

/// A self-test for people, a line for each check. What the deployment said is shown as ``VisibleText``.
struct SelfTestText {
    var style: ExplanationText.Style

    func line(_ check: Check, _ finding: Finding) -> String {
        let name = check.name.padded(to: 22)
        switch finding.verdict {
        case .notApplicable: return paint("– \(name)", .aside) + VisibleText.of(" \(finding.came)")
        case .held, .broken, .knownWeakness:
            let text = " \(check.sent): expected \(finding.expected); came \(finding.came)"
            return paint("\(mark(finding.verdict)) \(name)", colour(finding.verdict)) + VisibleText.of(text)
        }
    }

    func sum(_ report: SelfTest.Report) -> String {
        let broken = report.count(of: .broken)
        let head = broken == 0 ? paint("held", .good) : paint("\(broken) broken", .bad)
        return
            "\(head): \(report.count(of: .held)) checks held; of the others \(report.count(of: .knownWeakness)) are weaknesses of the "
            + "scheme, \(report.count(of: .notApplicable)) do not apply; "
            + "\(report.requests) requests in \(Int(report.seconds.rounded(.up))) s"
    }

    private enum Colour: String {
        case good = "32"
        case bad = "31"
        case doubtful = "33"
        case aside = "2"
    }

    private func mark(_ verdict: Finding.Verdict) -> String {
        switch verdict {
        case .held: "✓"
        case .broken: "✗"
        case .knownWeakness: "!"
        case .notApplicable: "–"
        }
    }

    private func colour(_ verdict: Finding.Verdict) -> Colour {
        switch verdict {
        case .held: .good
        case .broken: .bad
        case .knownWeakness: .doubtful
        case .notApplicable: .aside
        }
    }

    private func paint(_ text: String, _ colour: Colour) -> String {
        style == .plain ? text : "\u{1B}[\(colour.rawValue)m\(text)\u{1B}[0m"
    }
}

extension String {
    fileprivate func padded(to width: Int) -> String {
        self + String(repeating: " ", count: max(0, width - count))
    }
}

extension SelfTest.Report {
    /// One document; `checks` in the order in which they were asked.
    func json(_ url: String) -> JSONValue {
        let checks = findings.map { check, finding -> JSONValue in
            [
                "name": .string(check.name), "family": .string(check.family.rawValue),
                "verdict": .string(finding.verdict.rawValue), "sent": .string(check.sent),
                "expected": .string(finding.expected), "came": .string(finding.came),
            ]
        }
        return [
            "url": .string(url), "held": .integer(Int64(count(of: .held))),
            "broken": .integer(Int64(count(of: .broken))),
            "known_weaknesses": .integer(Int64(count(of: .knownWeakness))),
            "not_applicable": .integer(Int64(count(of: .notApplicable))), "requests": .integer(Int64(requests)),
            "seconds": .decimal(seconds), "checks": .array(checks),
        ]
    }
}
