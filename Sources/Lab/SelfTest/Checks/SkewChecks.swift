import CountersignSchemes
import CountersignWire

extension Check {
    /// Signatures of other times than now.
    static func skew(_ subject: Subject) -> [Check] {
        let (fresh, margin) = (subject.freshSeconds, margin(subject))
        return [
            Check("stale", .skew, "a request signed \(fresh + margin) s ago") { (inquiry) throws(Fault) in
                try isStale(inquiry, inquiry.now - fresh - margin)
            },
            Check("future", .skew, "a request signed \(fresh + margin) s from now") { (inquiry) throws(Fault) in
                try isStale(inquiry, inquiry.now + fresh + margin)
            },
            Check("just-fresh", .skew, "a request signed \(fresh - margin) s ago") { (inquiry) throws(Fault) in
                try isFresh(inquiry, inquiry.now - fresh + margin)
            },
            Check("just-early", .skew, "a request signed \(fresh - margin) s from now") { (inquiry) throws(Fault) in
                try isFresh(inquiry, inquiry.now + fresh - margin)
            },
        ]
    }

    /// Seconds that this machine's clock and the deployment's may differ by without a check going wrong for it.
    private static func margin(_ subject: Subject) -> Int64 { min(10, max(2, subject.freshSeconds / 4)) }

    private static func isStale(_ inquiry: Inquiry, _ at: Int64) throws(Fault) -> Finding {
        inquiry.judged(try inquiry.ask(try inquiry.signed(.withBody, at: at)), [.stale])
    }

    private static func isFresh(_ inquiry: Inquiry, _ at: Int64) throws(Fault) -> Finding {
        let said = try inquiry.ask(try inquiry.signed(.withBody, at: at))
        // A guard that was started a moment ago does not know what it let through before.
        if case .refused(_, [.unavailable]) = said {
            return .notApplicable(
                "the replay guard does not vouch for that time yet: it was started, or lost its file, since")
        }
        return .judged(said.isAccepted, expected: "accepted", came: "\(said)")
    }
}
