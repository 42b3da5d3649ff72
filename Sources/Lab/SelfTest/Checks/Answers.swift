import CountersignSchemes
import CountersignWire

extension Check {
    /// That the authority signs what it says, and says it to one request alone.
    static func answers(_ subject: Subject) -> [Check] {
        [
            Check("answer-signed", .routes, "a request that is refused, for the refusal's signature") {
                (inquiry) throws(Fault) in
                try look(inquiry, expected: "signed by the authority") { (look) in look.own }
            },
            Check("answer-bound", .routes, "the same, held against another request that was refused") {
                (inquiry) throws(Fault) in
                try look(inquiry, expected: "no signature for that one") { (look) in
                    if case .wrong = look.other { look.own } else { .wrong("it holds for another request, too") }
                }
            },
            Check("answer-whole", .routes, "the same, with another status, and with another body") {
                (inquiry) throws(Fault) in
                try look(inquiry, expected: "no signature for those") { (look) in
                    if case .wrong = look.changed { look.own } else { .wrong("it holds for a changed answer, too") }
                }
            },
        ]
    }

    /// One refusal, held against what it answers and against what it does not.
    private struct Look {
        let own: AuthorityVerifier.Finding
        let other: AuthorityVerifier.Finding
        /// The better of the two: neither must hold.
        let changed: AuthorityVerifier.Finding
    }

    private static func look(
        _ inquiry: Inquiry, expected: String, _ judge: (Look) -> AuthorityVerifier.Finding
    ) throws(Fault) -> Finding {
        guard inquiry.subject.scheme == .messageSignatures else {
            return .notApplicable("\(inquiry.subject.scheme.rawValue) has no place for signed answers")
        }
        guard let verifier = try AuthorityVerifier(inquiry.subject) else {
            return .notApplicable("no --authority-key to verify answers with")
        }
        let draft = try inquiry.signed(.withBody, at: inquiry.now - inquiry.subject.freshSeconds - 60)
        let another = try inquiry.signed(.withBody, at: inquiry.now - inquiry.subject.freshSeconds - 60)
        guard case .response(let response) = try inquiry.reply(to: draft.wire, draft.method) else {
            return .judged(false, expected: expected, came: "no answer")
        }
        var changed = response
        changed.status = response.status == 400 ? 401 : 400
        var longer = response
        longer.body.append(0x20)
        let withStatus = verifier.look(at: changed, to: draft.request())
        let finding = judge(
            Look(
                own: verifier.look(at: response, to: draft.request()),
                other: verifier.look(at: response, to: another.request()),
                changed: withStatus == .holds ? withStatus : verifier.look(at: longer, to: draft.request())))
        return .judged(finding == .holds, expected: expected, came: finding == .holds ? "as expected" : "\(finding)")
    }
}
