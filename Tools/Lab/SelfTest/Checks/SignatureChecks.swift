import CountersignSchemes
import CountersignSeal
import CountersignWire

extension SelfTestCheck {
    /// Missing, wrong and additional signatures.
    static func signatures(_ subject: SelfTestSubject) -> [SelfTestCheck] {
        [
            SelfTestCheck("no-signature", family: .tamper, sent: "a request without a signature") {
                (inquiry) throws(OperationalError) in
                inquiry.result(of: try inquiry.submit(inquiry.draft(.withBody)), expecting: [.unsigned])
            },
            SelfTestCheck(
                "tamper-signature", family: .tamper,
                sent: "\(places.count) signatures with one bit of theirs changed", run: flippedBits),
            SelfTestCheck("short-signature", family: .tamper, sent: "half a signature") {
                (inquiry) throws(OperationalError) in
                try inquiry.expectRefusal(as: [.badSignature, .malformed]) {
                    (draft) throws(OperationalError) in
                    try draft.halveSignature(of: inquiry.subject.scheme)
                }
            },
            SelfTestCheck("empty-signature", family: .tamper, sent: "an empty signature") {
                (inquiry) throws(OperationalError) in
                try inquiry.expectRefusal(as: [.badSignature, .malformed, .unsigned]) {
                    (draft) throws(OperationalError) in
                    try draft.emptySignature(of: inquiry.subject.scheme)
                }
            },
            SelfTestCheck("no-nonce", family: .skew, sent: "a signed request without a nonce", run: noNonce),
            SelfTestCheck(
                "uncovered-query", family: .tamper, sent: "a request whose signature does not cover the query"
            ) {
                (inquiry) throws(OperationalError) in
                try expectUncoveredRefused(.query, by: inquiry)
            },
            SelfTestCheck(
                "uncovered-body", family: .tamper, sent: "a request whose signature does not cover the body"
            ) {
                (inquiry) throws(OperationalError) in
                try expectUncoveredRefused(.body, by: inquiry)
            },
            SelfTestCheck(
                "two-signatures", family: .tamper,
                sent: "a request with a second signature beside the right one", run: twoSignatures),
            SelfTestCheck(
                "two-schemes", family: .downgrade, sent: "a signed request with signs of another scheme",
                run: twoSchemes),
            SelfTestCheck(
                "unknown-key", family: .tamper,
                sent: "\(rounds) requests of an unknown key, and as many with a wrong signature",
                run: unknownKey),
        ]
    }

    /// Byte positions in a signature of 16 to 64 bytes: both ends and some in between.
    private static let places = [0, 1, 7, 15, 16, 23, 30, 31]

    private static func flippedBits(_ inquiry: SelfTestClient) throws(OperationalError) -> SelfTestResult {
        var refused = 0
        var others: [ReplyOutcome] = []
        for place in places {
            var draft = try inquiry.signed(.withBody)
            try draft.flipSignature(of: inquiry.subject.scheme, at: place)
            let said = try inquiry.submit(draft)
            if said.isRefused(as: [.badSignature]) { refused += 1 } else { others.append(said) }
        }
        let rest = others.first.map { "; another was \($0)" } ?? ""
        return .judged(
            others.isEmpty, expected: "all refused as bad-signature",
            observed: "\(refused) of \(places.count)\(rest)")
    }

    private static func noNonce(_ inquiry: SelfTestClient) throws(OperationalError) -> SelfTestResult {
        guard let removeNonce = inquiry.subject.scheme.selfTest?.removeNonce else {
            return .notApplicable("the scheme has no nonce; what stands for it is the signature, or nothing")
        }
        var draft = try inquiry.signed(.withBody)
        try removeNonce(&draft, inquiry.subject)
        return inquiry.result(
            of: try inquiry.submit(draft), expecting: [.badSignature, .malformed, .unsigned])
    }

    private static func expectUncoveredRefused(_ part: OptionalPart, by inquiry: SelfTestClient)
        throws(OperationalError) -> SelfTestResult
    {
        guard let removeCoverage = inquiry.subject.scheme.selfTest?.removeCoverage(of: part) else {
            return .notApplicable("the scheme fixes what is signed")
        }
        var draft = try inquiry.signed(.withBody)
        try removeCoverage(&draft, inquiry.subject)
        return inquiry.result(of: try inquiry.submit(draft), expecting: [.badSignature])
    }

    private static func twoSignatures(_ inquiry: SelfTestClient) throws(OperationalError) -> SelfTestResult {
        try inquiry.expectRefusal(as: [.malformed, .badSignature, .unsigned]) {
            (draft) throws(OperationalError) in
            try inquiry.subject.signingScheme().addSignature(to: &draft)
        }
    }

    private static func twoSchemes(_ inquiry: SelfTestClient) throws(OperationalError) -> SelfTestResult {
        // A form's signature is in its body, which a server need not read to find that the other signature's
        // key is unknown.
        try inquiry.expectRefusal(as: [.malformed, .unknownKey]) { (draft) throws(OperationalError) in
            try inquiry.subject.signingScheme().addMarkersOfAnotherScheme(to: &draft, at: inquiry.now)
        }
    }

    private static let rounds = 5

    /// Time and length are reported for information: key ids are not secret.
    private static func unknownKey(_ inquiry: SelfTestClient) throws(OperationalError) -> SelfTestResult {
        var stranger = inquiry.subject
        guard let id = KeyID("selftest-nobody") else {
            throw OperationalError(.failed, message: "cannot be staged: no key id")
        }
        stranger.credentials.keyID = id
        stranger.credentials.key = SigningKey(Secret(random: 32))
        var impostor = inquiry.subject
        impostor.credentials.key = SigningKey(Secret(random: 32))
        let unknown = try measureRefusals(of: stranger, codes: [.unknownKey], with: inquiry)
        let wrong = try measureRefusals(of: impostor, codes: [.badSignature], with: inquiry)
        return .judged(
            unknown.isRefused && wrong.isRefused, expected: "refused as unknown-key and as bad-signature",
            observed:
                "\(unknown.said), \(unknown.median) µs, \(unknown.bytes) bytes; \(wrong.said), "
                + "\(wrong.median) µs, \(wrong.bytes) bytes"
        )
    }

    private struct RefusalMeasurement {
        var isRefused = true
        var said = ReplyOutcome.silent
        /// Microseconds.
        var median = 0
        var bytes = 0
    }

    private static func measureRefusals(
        of subject: SelfTestSubject, codes: [Refusal.Code], with inquiry: SelfTestClient
    ) throws(OperationalError) -> RefusalMeasurement {
        var timed = RefusalMeasurement()
        var times: [Int] = []
        for _ in 0..<rounds {
            let draft = try inquiry.sign(subject.draft(.withBody), by: subject)
            let connection = try inquiry.connect()
            inquiry.waitForTurn()
            let start = ContinuousClock.now
            inquiry.send(draft.wire, on: connection, pace: .atOnce)
            var reader = MessageReader(connection)
            let reply = inquiry.nextReply(to: draft.method, from: &reader)
            times.append(Int((ContinuousClock.now - start) / .microseconds(1)))
            timed.said = inquiry.outcome(of: reply)
            if case .response(let response) = reply { timed.bytes = response.body.count }
            if !timed.said.isRefused(as: codes) { timed.isRefused = false }
        }
        timed.median = times.sorted()[rounds / 2]
        return timed
    }
}
