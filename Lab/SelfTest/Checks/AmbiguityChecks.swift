import CountersignSchemes
import CountersignWire

extension SelfTestCheck {
    /// The ambiguities of a scheme: to be refused where a server can detect them, otherwise reported as a
    /// weakness of the scheme.
    static func ambiguity(_ subject: SelfTestSubject) -> [SelfTestCheck] {
        switch subject.scheme {
        case .messageSignatures: messageSignaturesAmbiguity
        case .sigV4: []
        case .formMD5: formMD5Ambiguity
        case .authV1: authAmbiguity + [keyCase, ampersand]
        case .authV2: authAmbiguity + [restamped]
        case .authV4: [duplicateMember, restamped]
        case .token: []
        }
    }

    private static var messageSignaturesAmbiguity: [SelfTestCheck] {
        [
            SelfTestCheck(
                "tamper-two-lines", family: .tamper,
                sent: "a signed request whose Content-Type comes a second time, unsigned"
            ) {
                (inquiry) throws(OperationalError) in
                try inquiry.expectRefusal(as: [.malformed, .badSignature]) {
                    (draft) throws(OperationalError) in
                    draft.fields.append(Draft.Field(name: "Content-Type", value: "text/plain"))
                }
            }
        ]
    }

    private static var formMD5Ambiguity: [SelfTestCheck] {
        [
            SelfTestCheck(
                "duplicate-parameter", family: .tamper, sent: "a signed form with one parameter a second time"
            ) {
                (inquiry) throws(OperationalError) in
                try expectEitherRefused(by: inquiry) { (draft) throws(OperationalError) in
                    draft.body = Array("selftest=another&".utf8) + draft.body
                } or: { (draft) throws(OperationalError) in
                    draft.body += Array("&selftest=another".utf8)
                }
            },
            SelfTestCheck(
                "nul-in-value", family: .tamper, sent: "a signed form with a NUL and more behind a value"
            ) {
                (inquiry) throws(OperationalError) in
                try inquiry.expectRefusal(as: [.malformed, .badSignature]) {
                    (draft) throws(OperationalError) in
                    let value =
                        String(decoding: draft.body, as: UTF8.self).part(after: "selftest=", upTo: ["&"])
                        ?? ""
                    try draft.replaceInBody("selftest=\(value)", by: "selftest=\(value)%00more")
                }
            },
            SelfTestCheck("private-key-sent", family: .tamper, sent: "a signed form that bears a private_key")
            { (inquiry) throws(OperationalError) in
                try inquiry.expectRefusal(as: [.malformed, .badSignature]) {
                    (draft) throws(OperationalError) in
                    draft.body += Array("&private_key=selftest".utf8)
                }
            },
            ampersand,
        ]
    }

    private static let authAmbiguity = [
        SelfTestCheck(
            "duplicate-parameter", family: .tamper, sent: "a signed query with one parameter a second time"
        ) {
            (inquiry) throws(OperationalError) in
            try expectEitherRefused(by: inquiry, shape: .bare) { (draft) throws(OperationalError) in
                try draft.replaceInTarget("selftest=", by: "selftest=another&selftest=")
            } or: { (draft) throws(OperationalError) in
                draft.target += Array("&selftest=another".utf8)
            }
        }
    ]

    /// Two parameters `a=1&b=2` signed, one `a` of the value `1&b=2` sent.
    private static let ampersand = SelfTestCheck(
        "ampersand-in-value", family: .tamper,
        sent: "two signed parameters, sent as one with an escaped `&` in its value"
    ) { (inquiry) throws(OperationalError) in
        var draft = inquiry.draft(.bare)
        draft.target += Array("&selftest_a=1&selftest_b=2".utf8)
        draft = try inquiry.sign(draft)
        try draft.replaceInTarget("selftest_a=1&selftest_b=2", by: "selftest_a=1%26selftest_b%3D2")
        return inquiry.result(
            of: try inquiry.submit(draft), weakness: "the scheme does not escape what it signs")
    }

    private static let keyCase = SelfTestCheck(
        "key-case", family: .tamper, sent: "a signed parameter under its name in upper case"
    ) {
        (inquiry) throws(OperationalError) in
        try inquiry.expectWeakness("auth-v1 signs names in lower case", shape: .bare) {
            (draft) throws(OperationalError) in
            try draft.replaceInTarget("selftest=", by: "SELFTEST=")
        }
    }

    private static let duplicateMember = SelfTestCheck(
        "duplicate-member", family: .tamper, sent: "a signed JSON body with one member twice"
    ) {
        (inquiry) throws(OperationalError) in
        try expectEitherRefused(by: inquiry) { (draft) throws(OperationalError) in
            try draft.replaceInBody("{", by: "{\"selftest\":\"another\",")
        } or: { (draft) throws(OperationalError) in
            try draft.replaceInBody("}", by: ",\"selftest\":\"another\"}")
        }
    }

    /// Before the signed one and after it: parsers differ in which of two they use.
    private static func expectEitherRefused(
        by inquiry: SelfTestClient, shape: RequestShape = .withBody,
        before: (inout Draft) throws(OperationalError) -> Void,
        or behind: (inout Draft) throws(OperationalError) -> Void
    ) throws(OperationalError) -> SelfTestResult {
        let first = try inquiry.expectRefusal(as: [.malformed, .badSignature], shape: shape, change: before)
        guard first.verdict == .held else { return first }
        return try inquiry.expectRefusal(as: [.malformed, .badSignature], shape: shape, change: behind)
    }

    private static let restamped = SelfTestCheck(
        "new-timestamp", family: .tamper, sent: "a signed request with a later timestamp"
    ) {
        (inquiry) throws(OperationalError) in
        let at = inquiry.now - inquiry.subject.freshSeconds - 60
        var draft = try inquiry.signed(.withBody, at: at)
        if inquiry.subject.scheme == .authV4 {
            draft.setField("X-Auth-Timestamp", to: String(inquiry.now))
        } else {
            try draft.replaceInTarget("auth_timestamp=\(at)", by: "auth_timestamp=\(inquiry.now)")
        }
        return inquiry.result(
            of: try inquiry.submit(draft),
            weakness: "\(inquiry.subject.scheme.rawValue) does not sign the timestamp")
    }
}
