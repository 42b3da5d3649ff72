import CountersignSchemes
import CountersignWire

extension Check {
    /// The same request more than once. With a body, since a policy may let equal GETs repeat.
    static func replay(_ subject: Subject) -> [Check] {
        [
            Check("replay-at-once", .replay, "the same bytes again on the same connection") {
                (inquiry) throws(Fault) in
                let draft = try inquiry.signed(.withBody)
                let connection = try inquiry.connect()
                var reader = MessageReader(connection)
                inquiry.send(draft.wire, on: connection)
                let first = inquiry.said(inquiry.next(to: draft.method, from: &reader))
                inquiry.send(draft.wire, on: connection)
                return second(inquiry.said(inquiry.next(to: draft.method, from: &reader)), after: first, inquiry)
            },
            Check("replay-new-connection", .replay, "the same bytes again on a new connection") {
                (inquiry) throws(Fault) in
                let draft = try inquiry.signed(.withBody)
                let first = try inquiry.ask(draft)
                return second(try inquiry.ask(draft), after: first, inquiry)
            },
            Check("replay-race", .replay, "the same bytes on \(racers) connections at once") {
                (inquiry) throws(Fault) in
                try race(inquiry)
            },
            Check(
                "nonce-again", .replay, "another request, rightly signed, with a nonce that was used", ask: nonceAgain),
            Check("burn-nonce", .replay, "a copy with a wrong signature, and then the genuine request") {
                (inquiry) throws(Fault) in
                let draft = try inquiry.signed(.withBody)
                var forged = draft
                try forged.flipSignature(of: inquiry.subject.scheme, at: 0)
                let first = try inquiry.ask(forged)
                let second = try inquiry.ask(draft)
                return .judged(
                    first.isRefused(as: [.badSignature]) && second.isAccepted,
                    expected: "refused as bad-signature, then accepted", came: "\(first), then \(second)")
            },
        ]
    }

    private static func nonceAgain(_ inquiry: Inquiry) throws(Fault) -> Finding {
        switch inquiry.subject.scheme {
        case .messageSignatures, .formMD5: break
        case .sigV4, .authV1, .authV2, .authV4, .token: return .notApplicable("the scheme has no nonce")
        }
        let nonce = Nonce.make(for: inquiry.subject.scheme)
        let first = try inquiry.ask(try inquiry.signed(.withBody, nonce: nonce))
        return second(try inquiry.ask(try inquiry.signed(.withBody, nonce: nonce)), after: first, inquiry)
    }

    private static let racers = 8
    private static let untold = "equal calls have equal signatures at any time"

    private static func second(_ said: Said, after first: Said, _ inquiry: Inquiry) -> Finding {
        let came = "\(first), then \(said)"
        guard inquiry.subject.replay == .told else {
            let isWeak = first.isAccepted && said.isAccepted
            let isHeld = first.isAccepted && said.isRefused(as: [.replayed])
            return Finding(
                isWeak ? .knownWeakness : isHeld ? .held : .broken,
                expected: "accepted twice, since under this scheme \(untold)", came: came)
        }
        return .judged(
            first.isAccepted && said.isRefused(as: [.replayed]), expected: "accepted, then refused as replayed",
            came: came)
    }

    /// All but the last byte of each first: the last ones leave together.
    private static func race(_ inquiry: Inquiry) throws(Fault) -> Finding {
        guard inquiry.subject.replay == .told else { return .notApplicable("under this scheme \(untold)") }
        let draft = try inquiry.signed(.withBody)
        let bytes = draft.wire
        var connections: [Link] = []
        for _ in 0..<racers { connections.append(try inquiry.connect()) }
        for connection in connections { inquiry.send(Array(bytes.dropLast()), on: connection) }
        for connection in connections { connection.write(Array(bytes.suffix(1))) }
        var accepted = 0
        var replayed = 0
        for connection in connections {
            var reader = MessageReader(connection)
            let said = inquiry.said(inquiry.next(to: draft.method, from: &reader))
            if said.isAccepted { accepted += 1 }
            if said.isRefused(as: [.replayed]) { replayed += 1 }
        }
        return .judged(
            accepted == 1 && replayed == racers - 1, expected: "one accepted, \(racers - 1) refused as replayed",
            came: "\(accepted) accepted, \(replayed) refused as replayed, \(racers - accepted - replayed) otherwise")
    }
}
