import CountersignSchemes
import CountersignWire

extension SelfTestCheck {
    /// Requests that have to be accepted. The requests of later checks are these with a change.
    static func genuine(_ subject: SelfTestSubject) -> [SelfTestCheck] {
        // The gateway verifies the signature before the route refuses the unknown token.
        let request =
            subject.endpoint == .ownRoute
            ? "a signed POST \(subject.prefix)/token with an unknown login token" : "a signed request"
        return [
            SelfTestCheck("genuine", family: .genuine, sent: request, weight: .all) {
                (inquiry) throws(OperationalError) in
                try expectAcceptance(of: inquiry.signed(.bare), by: inquiry)
            },
            SelfTestCheck(
                "genuine-body", family: .genuine, sent: "a signed request with a body", weight: .all
            ) { (inquiry) throws(OperationalError) in
                try expectAcceptance(of: inquiry.signed(.withBody), by: inquiry)
            },
        ]
    }

    static func expectAcceptance(of draft: Draft, by inquiry: SelfTestClient) throws(OperationalError)
        -> SelfTestResult
    {
        let said = try inquiry.submit(draft)
        return .judged(said.isAccepted, expected: "accepted", observed: "\(said)")
    }
}

extension SelfTestCheck {
    /// Signatures with a time other than now.
    static func skew(_ subject: SelfTestSubject) -> [SelfTestCheck] {
        let (fresh, margin) = (subject.freshSeconds, margin(subject))
        return [
            SelfTestCheck("stale", family: .skew, sent: "a request signed \(fresh + margin) s ago") {
                (inquiry) throws(OperationalError) in
                try expectStale(with: inquiry, at: inquiry.now - fresh - margin)
            },
            SelfTestCheck("future", family: .skew, sent: "a request signed \(fresh + margin) s from now") {
                (inquiry) throws(OperationalError) in
                try expectStale(with: inquiry, at: inquiry.now + fresh + margin)
            },
            SelfTestCheck("just-fresh", family: .skew, sent: "a request signed \(fresh - margin) s ago") {
                (inquiry) throws(OperationalError) in
                try expectFresh(with: inquiry, at: inquiry.now - fresh + margin)
            },
            SelfTestCheck("just-early", family: .skew, sent: "a request signed \(fresh - margin) s from now")
            { (inquiry) throws(OperationalError) in
                try expectFresh(with: inquiry, at: inquiry.now + fresh - margin)
            },
        ]
    }

    /// Seconds by which this machine's clock and the deployment's may differ without a false result.
    private static func margin(_ subject: SelfTestSubject) -> Int64 {
        min(10, max(2, subject.freshSeconds / 4))
    }

    private static func expectStale(with inquiry: SelfTestClient, at: Int64) throws(OperationalError)
        -> SelfTestResult
    {
        inquiry.result(of: try inquiry.submit(try inquiry.signed(.withBody, at: at)), expecting: [.stale])
    }

    private static func expectFresh(with inquiry: SelfTestClient, at: Int64) throws(OperationalError)
        -> SelfTestResult
    {
        let said = try inquiry.submit(try inquiry.signed(.withBody, at: at))
        // A replay guard that has just started does not know the requests accepted before.
        if case .refused(_, [.unavailable]) = said {
            return .notApplicable(
                "the replay guard does not vouch for that time yet: it was started, or lost its file, since")
        }
        return .judged(said.isAccepted, expected: "accepted", observed: "\(said)")
    }
}
