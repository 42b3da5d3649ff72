import CountersignSchemes
import CountersignWire

extension Check {
    /// What has to be let in. All that is refused afterwards is one of these with something changed.
    static func genuine(_ subject: Subject) -> [Check] {
        // Its signature is judged first; that the token is nobody's is what the route itself then says.
        let request =
            subject.place == .ownRoute
            ? "a signed POST \(subject.prefix)/token with a login token that is nobody's" : "a signed request"
        return [
            Check("genuine", .genuine, request, weight: .all) { (inquiry) throws(Fault) in
                try accepts(inquiry.signed(.bare), inquiry)
            },
            Check("genuine-body", .genuine, "a signed request with a body", weight: .all) { (inquiry) throws(Fault) in
                try accepts(inquiry.signed(.withBody), inquiry)
            },
        ]
    }

    static func accepts(_ draft: Draft, _ inquiry: Inquiry) throws(Fault) -> Finding {
        let said = try inquiry.ask(draft)
        return .judged(said.isAccepted, expected: "accepted", came: "\(said)")
    }
}
