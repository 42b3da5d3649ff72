import CountersignSchemes
import CountersignWire

extension SelfTestCheck {
    /// The same request more than once. With a body, since a policy may let equal GETs repeat.
    static func replay(_ subject: SelfTestSubject) -> [SelfTestCheck] {
        [
            SelfTestCheck(
                "replay-at-once", family: .replay, sent: "the same bytes again on the same connection"
            ) {
                (inquiry) throws(OperationalError) in
                let draft = try inquiry.signed(.withBody)
                let connection = try inquiry.connect()
                var reader = MessageReader(connection)
                inquiry.send(draft.wire, on: connection)
                let first = inquiry.outcome(of: inquiry.nextReply(to: draft.method, from: &reader))
                inquiry.send(draft.wire, on: connection)
                return judgeSecond(
                    inquiry.outcome(of: inquiry.nextReply(to: draft.method, from: &reader)), after: first,
                    with: inquiry)
            },
            SelfTestCheck(
                "replay-new-connection", family: .replay, sent: "the same bytes again on a new connection"
            ) {
                (inquiry) throws(OperationalError) in
                let draft = try inquiry.signed(.withBody)
                let first = try inquiry.submit(draft)
                return judgeSecond(try inquiry.submit(draft), after: first, with: inquiry)
            },
            SelfTestCheck(
                "replay-race", family: .replay, sent: "the same bytes on \(racers) connections at once"
            ) {
                (inquiry) throws(OperationalError) in
                try race(inquiry)
            },
            SelfTestCheck(
                "nonce-again", family: .replay,
                sent: "another request, rightly signed, with a nonce that was used", run: nonceAgain),
            SelfTestCheck(
                "burn-nonce", family: .replay,
                sent: "a copy with a wrong signature, and then the genuine request"
            ) {
                (inquiry) throws(OperationalError) in
                let draft = try inquiry.signed(.withBody)
                var forged = draft
                try forged.flipSignature(of: inquiry.subject.scheme, at: 0)
                let first = try inquiry.submit(forged)
                let second = try inquiry.submit(draft)
                return .judged(
                    first.isRefused(as: [.badSignature]) && second.isAccepted,
                    expected: "refused as bad-signature, then accepted", observed: "\(first), then \(second)")
            },
        ]
    }

    private static func nonceAgain(_ inquiry: SelfTestClient) throws(OperationalError) -> SelfTestResult {
        guard inquiry.subject.scheme.selfTest?.removeNonce != nil else {
            return .notApplicable("the scheme has no nonce")
        }
        let nonce = Nonce.make(for: inquiry.subject.scheme)
        let first = try inquiry.submit(try inquiry.signed(.withBody, nonce: nonce))
        return judgeSecond(
            try inquiry.submit(try inquiry.signed(.withBody, nonce: nonce)), after: first, with: inquiry)
    }

    private static let racers = 8
    private static let untold = "equal calls have equal signatures at any time"

    private static func judgeSecond(
        _ said: ReplyOutcome, after first: ReplyOutcome, with inquiry: SelfTestClient
    ) -> SelfTestResult {
        let came = "\(first), then \(said)"
        guard inquiry.subject.canDetectReplay else {
            let isWeak = first.isAccepted && said.isAccepted
            let isHeld = first.isAccepted && said.isRefused(as: [.replayed])
            return SelfTestResult(
                isWeak ? .knownWeakness : isHeld ? .held : .broken,
                expected: "accepted twice, since under this scheme \(untold)", observed: came)
        }
        return .judged(
            first.isAccepted && said.isRefused(as: [.replayed]),
            expected: "accepted, then refused as replayed",
            observed: came)
    }

    /// Sends all but the last byte of each request first, then the last bytes together.
    private static func race(_ inquiry: SelfTestClient) throws(OperationalError) -> SelfTestResult {
        guard inquiry.subject.canDetectReplay else { return .notApplicable("under this scheme \(untold)") }
        let draft = try inquiry.signed(.withBody)
        let bytes = draft.wire
        var connections: [RawConnection] = []
        for _ in 0..<racers { connections.append(try inquiry.connect()) }
        for connection in connections { inquiry.send(Array(bytes.dropLast()), on: connection) }
        for connection in connections { connection.write(Array(bytes.suffix(1))) }
        var accepted = 0
        var replayed = 0
        for connection in connections {
            var reader = MessageReader(connection)
            let said = inquiry.outcome(of: inquiry.nextReply(to: draft.method, from: &reader))
            if said.isAccepted { accepted += 1 }
            if said.isRefused(as: [.replayed]) { replayed += 1 }
        }
        return .judged(
            accepted == 1 && replayed == racers - 1,
            expected: "one accepted, \(racers - 1) refused as replayed",
            observed:
                "\(accepted) accepted, \(replayed) refused as replayed, \(racers - accepted - replayed) "
                + "otherwise"
        )
    }
}
