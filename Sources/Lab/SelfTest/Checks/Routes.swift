import CountersignSchemes
import CountersignSeal
import CountersignTransport
import CountersignWire

extension Check {
    /// What the authority says itself.
    static func routes(_ subject: Subject) -> [Check] {
        [
            Check("time", .routes, "GET \(subject.prefix)/time with a nonce", ask: time),
            Check("unknown-route", .routes, "a signed request for a route of the authority's that is not there") {
                (inquiry) throws(Fault) in
                var draft = Draft(
                    method: "GET", target: Array("\(inquiry.subject.prefix)/selftest-nowhere".utf8),
                    authority: inquiry.subject.origin.authority, transport: inquiry.subject.transport)
                draft = try inquiry.sign(draft)
                let reply = try inquiry.reply(to: draft.wire, draft.method)
                guard case .response(let response) = reply, response.status == 404 else {
                    return .judged(false, expected: "404", came: "\(Said(reply))")
                }
                return .judged(true, expected: "404", came: "404")
            },
        ]
    }

    /// Seconds by which two machines' clocks may differ and signatures still be fresh, with some room.
    private static let clockDifference: Int64 = 30

    private static func time(_ inquiry: Inquiry) throws(Fault) -> Finding {
        let nonce = Nonce.make(for: .messageSignatures)
        let draft = Draft(
            method: "GET", target: Array("\(inquiry.subject.prefix)/time?nonce=\(nonce)".utf8),
            authority: inquiry.subject.origin.authority, transport: inquiry.subject.transport)
        let expected =
            "the nonce, a time within \(clockDifference) s of this machine's"
            + (inquiry.subject.authorityKey == nil ? "" : ", signed by the authority")
        guard case .response(let response) = try inquiry.reply(to: draft.wire, "GET"), response.status == 200,
            let document = try? JSONReader.read(response.body)
        else { return .judged(false, expected: expected, came: "no such answer") }
        guard document.root["nonce"]?.string == nonce else {
            return .judged(false, expected: expected, came: "another nonce, or none")
        }
        guard let member = document.root["time"], let seconds = document.integer(member, in: 0...253_402_300_799) else {
            return .judged(false, expected: expected, came: "the nonce, and no time")
        }
        let difference = Int64(seconds) - inquiry.now
        let came = "the nonce, and a time \(difference) s from this machine's"
        guard abs(difference) <= clockDifference else { return .judged(false, expected: expected, came: came) }
        guard let key = try AuthorityVerifier(inquiry.subject) else {
            return Finding(
                .held, expected: expected, came: "\(came); its signature was not looked at: no --authority-key")
        }
        let finding = key.look(at: response, to: Request(), bound: .content)
        return .judged(finding == .holds, expected: expected, came: "\(came); \(finding)")
    }
}
