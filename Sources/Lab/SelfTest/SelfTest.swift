import CountersignWire

/// A deployment, attacked by its own operator: the published vectors, then replays, changed requests, wrong times, other schemes and
/// broken framing, over real connections. It calls with a release key and does nothing that a client of that release could not do.
package struct SelfTest {
    /// What was found out.
    package struct Report: Sendable {
        package var findings: [(check: Check, finding: Finding)] = []
        /// That were sent, refused ones included.
        package var requests = 0
        package var seconds = 0.0

        package func count(of verdict: Finding.Verdict) -> Int {
            findings.count { $0.finding.verdict == verdict }
        }
    }

    private let subject: Subject
    package let checks: [Check]

    package init(of subject: Subject) {
        self.subject = subject
        checks = Check.all(for: subject)
    }

    /// Asks one after the other, and tells of each as it is answered. Blocks. What cannot be staged, or reached, is a fault and no finding.
    package func run(telling: (Check, Finding) -> Void) throws(Fault) -> Report {
        let inquiry = Inquiry(subject)
        var report = Report()
        let start = ContinuousClock.now
        var obstacle: String?
        for check in checks {
            let finding: Finding
            if let obstacle {
                finding = .notApplicable(obstacle)
            } else {
                finding = try check.ask(inquiry)
                if finding.verdict == .broken, check.weight == .all {
                    obstacle = "\(check.name) did not hold: that others are refused would say nothing"
                }
            }
            report.findings.append((check, finding))
            telling(check, finding)
        }
        report.requests = inquiry.requests
        report.seconds = Double((ContinuousClock.now - start) / .milliseconds(1)) / 1000
        return report
    }
}

extension Check {
    /// All that is asked of such a deployment, in order.
    static func all(for subject: Subject) -> [Check] {
        vectors(subject) + genuine(subject) + replay(subject) + tamper(subject) + ambiguity(subject)
            + signatureParameters(subject) + skew(subject) + signatures(subject) + downgrade(subject) + framing(subject)
            + routes(subject) + answers(subject) + leaks(subject)
    }
}
