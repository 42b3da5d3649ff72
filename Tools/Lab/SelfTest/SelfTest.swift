import CountersignWire

/// Checks of a deployment that its operator runs: the published vectors, then replays, changed requests,
/// wrong times, other schemes and broken framing, over real connections. The checks use a release key and do
/// nothing that a client of that release could not do.
package struct SelfTest {
    /// The results of a run.
    package struct Report: Sendable {
        package var results: [(check: SelfTestCheck, finding: SelfTestResult)] = []
        /// The number of requests sent, refused ones included.
        package var requests = 0
        package var seconds = 0.0

        package func count(of verdict: SelfTestResult.Verdict) -> Int {
            results.count { $0.finding.verdict == verdict }
        }
    }

    private let subject: SelfTestSubject
    package let checks: [SelfTestCheck]

    package init(of subject: SelfTestSubject) {
        self.subject = subject
        checks = SelfTestCheck.all(for: subject)
    }

    /// Runs the checks one after the other, and calls `telling` after each. Blocks. Throws where the
    /// deployment cannot be reached or a check cannot be staged.
    package func run(telling: (SelfTestCheck, SelfTestResult) -> Void) throws(OperationalError) -> Report {
        let inquiry = SelfTestClient(subject)
        var report = Report()
        let start = ContinuousClock.now
        var obstacle: String?
        for check in checks {
            let finding: SelfTestResult
            if let obstacle {
                finding = .notApplicable(obstacle)
            } else {
                finding = try check.run(inquiry)
                if finding.verdict == .broken, check.weight == .all {
                    obstacle = "\(check.name) did not hold: that others are refused would say nothing"
                }
            }
            report.results.append((check, finding))
            telling(check, finding)
        }
        report.requests = inquiry.requests
        report.seconds = Double((ContinuousClock.now - start) / .milliseconds(1)) / 1000
        return report
    }
}

extension SelfTestCheck {
    /// All checks that apply to such a deployment, in order.
    static func all(for subject: SelfTestSubject) -> [SelfTestCheck] {
        vectors(subject) + genuine(subject) + replay(subject) + tamper(subject) + ambiguity(subject)
            + signatureParameters(subject) + skew(subject) + signatures(subject) + downgrade(subject)
            + framing(subject)
            + routes(subject) + answers(subject) + leaks(subject)
    }
}

/// One check of a deployment.
package struct SelfTestCheck: Sendable {
    /// The subject of a check; checks run in this order.
    package enum Family: String, Sendable, CaseIterable {
        case vectors, genuine, replay, tamper, skew, downgrade, framing, routes, leaks
    }

    /// The consequence of a failed check.
    enum Weight: Sendable {
        case one
        /// Ends the run: if the genuine request is refused, other refusals prove nothing.
        case all
    }

    /// Lower-case words with hyphens: `replay-at-once`.
    package let name: String
    package let family: Family
    /// A description of the request that is sent.
    package let sent: String
    let weight: Weight
    let run: @Sendable (SelfTestClient) throws(OperationalError) -> SelfTestResult

    init(
        _ name: String, family: Family, sent: String, weight: Weight = .one,
        run: @escaping @Sendable (SelfTestClient) throws(OperationalError) -> SelfTestResult
    ) {
        self.name = name
        self.family = family
        self.sent = sent
        self.weight = weight
        self.run = run
    }
}

/// The result of a ``SelfTestCheck``.
package struct SelfTestResult: Sendable, Equatable {
    package enum Verdict: String, Sendable {
        case held
        case broken
        /// The scheme itself allows this; no deployment can prevent it.
        case knownWeakness = "known-weakness"
        case notApplicable = "not-applicable"
    }

    package let verdict: Verdict
    package let expected: String
    /// The observed behaviour; for a check that does not apply, the reason.
    package let observed: String

    init(_ verdict: Verdict, expected: String, observed: String) {
        self.verdict = verdict
        self.expected = expected
        self.observed = observed
    }

    static func notApplicable(_ reason: String) -> SelfTestResult {
        SelfTestResult(.notApplicable, expected: "nothing", observed: reason)
    }

    /// `held` if `isAsExpected`, else `broken`.
    static func judged(_ isAsExpected: Bool, expected: String, observed: String) -> SelfTestResult {
        SelfTestResult(isAsExpected ? .held : .broken, expected: expected, observed: observed)
    }
}
