import CountersignSchemes
import CountersignWire

extension Check {
    /// What a scheme reads in two ways: refused where anybody can, shown as the scheme's own weakness where not.
    static func ambiguity(_ subject: Subject) -> [Check] {
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

    private static var messageSignaturesAmbiguity: [Check] {
        [
            Check("tamper-two-lines", .tamper, "a signed request whose Content-Type comes a second time, unsigned") {
                (inquiry) throws(Fault) in
                try inquiry.refuses([.malformed, .badSignature]) { (draft) throws(Fault) in
                    draft.fields.append(Draft.Field("Content-Type", "text/plain"))
                }
            }
        ]
    }

    private static var formMD5Ambiguity: [Check] {
        [
            Check("duplicate-parameter", .tamper, "a signed form with one parameter a second time") {
                (inquiry) throws(Fault) in
                try refusesEither(inquiry) { (draft) throws(Fault) in
                    draft.body = Array("selftest=another&".utf8) + draft.body
                } or: { (draft) throws(Fault) in
                    draft.body += Array("&selftest=another".utf8)
                }
            },
            Check("nul-in-value", .tamper, "a signed form with a NUL and more behind a value") {
                (inquiry) throws(Fault) in
                try inquiry.refuses([.malformed, .badSignature]) { (draft) throws(Fault) in
                    let value = String(decoding: draft.body, as: UTF8.self).part(after: "selftest=", upTo: ["&"]) ?? ""
                    try draft.replaceInBody("selftest=\(value)", by: "selftest=\(value)%00more")
                }
            },
            Check("private-key-sent", .tamper, "a signed form that bears a private_key") { (inquiry) throws(Fault) in
                try inquiry.refuses([.malformed, .badSignature]) { (draft) throws(Fault) in
                    draft.body += Array("&private_key=selftest".utf8)
                }
            },
            ampersand,
        ]
    }

    private static let authAmbiguity = [
        Check("duplicate-parameter", .tamper, "a signed query with one parameter a second time") {
            (inquiry) throws(Fault) in
            try refusesEither(inquiry, .bare) { (draft) throws(Fault) in
                try draft.replaceInTarget("selftest=", by: "selftest=another&selftest=")
            } or: { (draft) throws(Fault) in
                draft.target += Array("&selftest=another".utf8)
            }
        }
    ]

    /// Two parameters `a=1&b=2` signed, one `a` of the value `1&b=2` sent.
    private static let ampersand = Check(
        "ampersand-in-value", .tamper, "two signed parameters, sent as one with an escaped `&` in its value"
    ) { (inquiry) throws(Fault) in
        var draft = inquiry.draft(.bare)
        draft.target += Array("&selftest_a=1&selftest_b=2".utf8)
        draft = try inquiry.sign(draft)
        try draft.replaceInTarget("selftest_a=1&selftest_b=2", by: "selftest_a=1%26selftest_b%3D2")
        return inquiry.open(try inquiry.ask(draft), "the scheme does not escape what it signs")
    }

    private static let keyCase = Check("key-case", .tamper, "a signed parameter under its name in upper case") {
        (inquiry) throws(Fault) in
        try inquiry.leavesOpen("auth-v1 signs names in lower case", .bare) { (draft) throws(Fault) in
            try draft.replaceInTarget("selftest=", by: "SELFTEST=")
        }
    }

    private static let duplicateMember = Check("duplicate-member", .tamper, "a signed JSON body with one member twice")
    {
        (inquiry) throws(Fault) in
        try refusesEither(inquiry) { (draft) throws(Fault) in
            try draft.replaceInBody("{", by: "{\"selftest\":\"another\",")
        } or: { (draft) throws(Fault) in
            try draft.replaceInBody("}", by: ",\"selftest\":\"another\"}")
        }
    }

    /// Before the signed one and behind it: readers differ in which of two counts.
    private static func refusesEither(
        _ inquiry: Inquiry, _ shape: Shape = .withBody, _ before: (inout Draft) throws(Fault) -> Void,
        or behind: (inout Draft) throws(Fault) -> Void
    ) throws(Fault) -> Finding {
        let first = try inquiry.refuses([.malformed, .badSignature], shape, change: before)
        guard first.verdict == .held else { return first }
        return try inquiry.refuses([.malformed, .badSignature], shape, change: behind)
    }

    private static let restamped = Check("new-timestamp", .tamper, "a signed request with a later timestamp") {
        (inquiry) throws(Fault) in
        let at = inquiry.now - inquiry.subject.freshSeconds - 60
        var draft = try inquiry.signed(.withBody, at: at)
        if inquiry.subject.scheme == .authV4 {
            draft.set("X-Auth-Timestamp", String(inquiry.now))
        } else {
            try draft.replaceInTarget("auth_timestamp=\(at)", by: "auth_timestamp=\(inquiry.now)")
        }
        return inquiry.open(try inquiry.ask(draft), "\(inquiry.subject.scheme.rawValue) does not sign the timestamp")
    }
}
