import CountersignSchemes
import CountersignSeal
import CountersignWire

extension Check {
    /// Signatures that are not there, not right, or one too many.
    static func signatures(_ subject: Subject) -> [Check] {
        [
            Check("no-signature", .tamper, "a request without a signature") { (inquiry) throws(Fault) in
                inquiry.judged(try inquiry.ask(inquiry.draft(.withBody)), [.unsigned])
            },
            Check("tamper-signature", .tamper, "\(places.count) signatures with one bit of theirs changed", ask: flips),
            Check("short-signature", .tamper, "half a signature") { (inquiry) throws(Fault) in
                try inquiry.refuses([.badSignature, .malformed]) { (draft) throws(Fault) in
                    try draft.halveSignature(of: inquiry.subject.scheme)
                }
            },
            Check("empty-signature", .tamper, "an empty signature") { (inquiry) throws(Fault) in
                try inquiry.refuses([.badSignature, .malformed, .unsigned]) { (draft) throws(Fault) in
                    try draft.emptySignature(of: inquiry.subject.scheme)
                }
            },
            Check("no-nonce", .skew, "a signed request without a nonce", ask: noNonce),
            Check("uncovered-query", .tamper, "a request whose signature does not cover the query") {
                (inquiry) throws(Fault) in
                try uncovered("@query", inquiry)
            },
            Check("uncovered-body", .tamper, "a request whose signature does not cover the body") {
                (inquiry) throws(Fault) in
                try uncovered("content-digest", inquiry)
            },
            Check(
                "two-signatures", .tamper, "a request with a second signature beside the right one", ask: twoSignatures),
            Check("two-schemes", .downgrade, "a signed request with signs of another scheme", ask: twoSchemes),
            Check(
                "unknown-key", .tamper,
                "\(rounds) requests of a key that nobody has, and as many with a wrong signature",
                ask: unknownKey),
        ]
    }

    /// Of a signature of 16 to 64 bytes: both ends, and between.
    private static let places = [0, 1, 7, 15, 16, 23, 30, 31]

    private static func flips(_ inquiry: Inquiry) throws(Fault) -> Finding {
        var refused = 0
        var others: [Said] = []
        for place in places {
            var draft = try inquiry.signed(.withBody)
            try draft.flipSignature(of: inquiry.subject.scheme, at: place)
            let said = try inquiry.ask(draft)
            if said.isRefused(as: [.badSignature]) { refused += 1 } else { others.append(said) }
        }
        let rest = others.first.map { "; another was \($0)" } ?? ""
        return .judged(
            others.isEmpty, expected: "all refused as bad-signature", came: "\(refused) of \(places.count)\(rest)")
    }

    private static func noNonce(_ inquiry: Inquiry) throws(Fault) -> Finding {
        var draft: Draft
        switch inquiry.subject.scheme {
        case .messageSignatures:
            draft = try inquiry.signed(.withBody)
            let nonce = draft.value(of: "Signature-Input")?.part(after: ";nonce=\"", upTo: ["\""]) ?? ""
            try draft.replace(";nonce=\"\(nonce)\"", by: "", inField: "Signature-Input")
            try draft.signAnew(inquiry.subject)
        case .formMD5:
            draft = try inquiry.signed(.withBody)
            try draft.signAnew(inquiry.subject.credentials, without: "rand")
        case .sigV4, .authV1, .authV2, .authV4, .token:
            return .notApplicable("the scheme has no nonce; what stands for it is the signature, or nothing")
        }
        return inquiry.judged(try inquiry.ask(draft), [.badSignature, .malformed, .unsigned])
    }

    private static func uncovered(_ component: String, _ inquiry: Inquiry) throws(Fault) -> Finding {
        guard inquiry.subject.scheme == .messageSignatures else {
            return .notApplicable("the scheme fixes what is signed")
        }
        var draft = try inquiry.signed(.withBody)
        try draft.replace(" \"\(component)\"", by: "", inField: "Signature-Input")
        try draft.signAnew(inquiry.subject)
        return inquiry.judged(try inquiry.ask(draft), [.badSignature])
    }

    private static func twoSignatures(_ inquiry: Inquiry) throws(Fault) -> Finding {
        try inquiry.refuses([.malformed, .badSignature, .unsigned]) { (draft) throws(Fault) in
            switch inquiry.subject.scheme {
            case .messageSignatures:
                for name in ["Signature-Input", "Signature"] {
                    let value = draft.value(of: name) ?? ""
                    draft.set(name, "\(value), \(value.replacing("app=", with: "second=", maxReplacements: 1))")
                }
            case .sigV4, .authV4:
                let name = inquiry.subject.scheme == .sigV4 ? "Authorization" : "X-Auth-Signature"
                draft.fields.append(Draft.Field(name, draft.value(of: name) ?? ""))
            case .formMD5: draft.body += Array("&sign=00000000000000000000000000000000".utf8)
            case .authV1, .authV2:
                draft.target += Array("&auth_signature=\(String(repeating: "0", count: 64))".utf8)
            case .token: break
            }
        }
    }

    private static func twoSchemes(_ inquiry: Inquiry) throws(Fault) -> Finding {
        // A form's own signature is in its body, which a server need not read to see that the other one is of no key.
        try inquiry.refuses([.malformed, .unknownKey]) { (draft) throws(Fault) in
            if inquiry.subject.scheme == .authV4 {
                draft.set("Signature-Input", "app=(\"@method\");created=\(inquiry.now);keyid=\"selftest\"")
                draft.set("Signature", "app=:AAAA:")
            } else {
                draft.set("X-Auth-Version", "4")
                draft.set("X-Auth-Client-ID", "selftest")
                draft.set("X-Auth-Timestamp", String(inquiry.now))
                draft.set("X-Auth-Signature", String(repeating: "0", count: 64))
            }
        }
    }

    private static let rounds = 5

    /// That time and length do not differ much is for information: key ids are no secrets.
    private static func unknownKey(_ inquiry: Inquiry) throws(Fault) -> Finding {
        var stranger = inquiry.subject
        guard let id = KeyID("selftest-nobody") else { throw Fault(.failed, "cannot be staged: no key id") }
        stranger.credentials.keyID = id
        stranger.credentials.key = SigningKey(Secret(random: 32))
        var impostor = inquiry.subject
        impostor.credentials.key = SigningKey(Secret(random: 32))
        let unknown = try timed(stranger, [.unknownKey], inquiry)
        let wrong = try timed(impostor, [.badSignature], inquiry)
        return .judged(
            unknown.isRefused && wrong.isRefused, expected: "refused as unknown-key and as bad-signature",
            came:
                "\(unknown.said), \(unknown.median) µs, \(unknown.bytes) bytes; \(wrong.said), \(wrong.median) µs, \(wrong.bytes) bytes"
        )
    }

    private struct Timed {
        var isRefused = true
        var said = Said.silent
        /// Microseconds.
        var median = 0
        var bytes = 0
    }

    private static func timed(_ subject: Subject, _ codes: [Refusal.Code], _ inquiry: Inquiry) throws(Fault) -> Timed {
        var timed = Timed()
        var times: [Int] = []
        for _ in 0..<rounds {
            let draft = try inquiry.sign(subject.draft(.withBody), by: subject)
            let connection = try inquiry.connect()
            inquiry.wait()
            let start = ContinuousClock.now
            inquiry.send(draft.wire, on: connection, .atOnce)
            var reader = MessageReader(connection)
            let reply = inquiry.next(to: draft.method, from: &reader)
            times.append(Int((ContinuousClock.now - start) / .microseconds(1)))
            timed.said = inquiry.said(reply)
            if case .response(let response) = reply { timed.bytes = response.body.count }
            if !timed.said.isRefused(as: codes) { timed.isRefused = false }
        }
        timed.median = times.sorted()[rounds / 2]
        return timed
    }
}
