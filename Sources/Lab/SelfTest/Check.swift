import CountersignWire

/// One question that is put to a deployment.
package struct Check: Sendable {
    /// What the question is about; they are asked in this order.
    package enum Family: String, Sendable, CaseIterable {
        case vectors, genuine, replay, tamper, skew, downgrade, framing, routes, leaks
    }

    /// What follows where the deployment fails it.
    enum Weight: Sendable {
        case one
        /// Nothing else can be asked: a refusal says nothing where the genuine request is refused, too.
        case all
    }

    /// Lower-case words with hyphens: `replay-at-once`.
    package let name: String
    package let family: Family
    /// What is sent, for people.
    package let sent: String
    let weight: Weight
    let ask: @Sendable (Inquiry) throws(Fault) -> Finding

    init(
        _ name: String, _ family: Family, _ sent: String, weight: Weight = .one,
        ask: @escaping @Sendable (Inquiry) throws(Fault) -> Finding
    ) {
        self.name = name
        self.family = family
        self.sent = sent
        self.weight = weight
        self.ask = ask
    }
}

/// What came of a ``Check``.
package struct Finding: Sendable, Equatable {
    package enum Verdict: String, Sendable {
        case held
        case broken
        /// The scheme leaves this open, whoever serves it: nothing that a deployment could mend.
        case knownWeakness = "known-weakness"
        case notApplicable = "not-applicable"
    }

    package let verdict: Verdict
    package let expected: String
    /// What came instead, or also; of what does not apply, the reason.
    package let came: String

    init(_ verdict: Verdict, expected: String, came: String) {
        self.verdict = verdict
        self.expected = expected
        self.came = came
    }

    static func notApplicable(_ reason: String) -> Finding {
        Finding(.notApplicable, expected: "nothing", came: reason)
    }

    /// Held where `isAsExpected`, else broken.
    static func judged(_ isAsExpected: Bool, expected: String, came: String) -> Finding {
        Finding(isAsExpected ? .held : .broken, expected: expected, came: came)
    }
}
