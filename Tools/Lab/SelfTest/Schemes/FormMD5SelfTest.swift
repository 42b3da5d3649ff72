import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Signs the parameters of a form or of a query, and neither method nor path. Source: docs/protocol.md,
/// "form-md5".
struct FormMD5SelfTest: SelfTestScheme {
    let name = SchemeName.formMD5
    let signsFields = false
    let signsResponses = false

    var weaknesses: SelfTestWeaknesses {
        var weaknesses = SelfTestWeaknesses(path: "form-md5 does not sign the path")
        weaknesses.method = (
            reason: "form-md5 does not sign the method: the form of a POST is good as a GET's query",
            change: { (draft) in
                draft.target = Array("\(draft.path)?".utf8) + draft.body
                draft.fields.removeAll { $0.isNamed("Content-Type") }
                draft.method = "GET"
                draft.body = []
            }
        )
        return weaknesses
    }

    var parameterChanges: [ParameterChange] {
        [
            ParameterChange("tamper-created", of: "timestamp", at: .formField("timestamp")) {
                (old) throws(OperationalError) in try old.withAnotherLastDigit()
            },
            ParameterChange("tamper-nonce", of: "rand", at: .formField("rand"), to: "selftestselftest"),
            ParameterChange("tamper-version", of: "app version", at: .formField("ver"), to: "0.selftest"),
        ]
    }

    var ambiguityChecks: [SelfTestCheck] {
        [
            SelfTestCheck(
                "duplicate-parameter", family: .tamper, sent: "a signed form with one parameter a second time"
            ) {
                (inquiry) throws(OperationalError) in
                try inquiry.expectEitherRefused { (draft) throws(OperationalError) in
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
            .ampersandInValue,
        ]
    }

    func addSignature(to draft: inout Draft) {
        draft.body += Array("&sign=00000000000000000000000000000000".utf8)
    }

    var removeNonce: SignatureRenewal? {
        { (draft, subject) throws(OperationalError) in
            try draft.signAgain(as: subject.credentials, without: "rand")
        }
    }

    func removeCoverage(of part: OptionalPart) -> SignatureRenewal? { nil }

    /// form-md5 always states platform and version.
    func complete(_ credentials: inout Credentials) {
        if credentials.platform.isEmpty { credentials.platform = "ios" }
        if credentials.version.isEmpty { credentials.version = "1.0" }
    }
}

extension Draft {
    /// Signs a form without one of its parameters.
    fileprivate mutating func signAgain(as credentials: Credentials, without name: String)
        throws(OperationalError)
    {
        let form = String(decoding: body, as: UTF8.self).split(separator: "&")
        let kept = form.filter { !$0.hasPrefix("\(name)=") && !$0.hasPrefix("sign=") }
        guard kept.count == form.count - 2 else {
            throw OperationalError(.failed, message: "cannot be staged: no \(name) in the form")
        }
        if credentials.formMD5Key == .appended {
            let text = Array(kept.sorted().joined(separator: "&").utf8)
            return sign(kept, as: credentials, over: StringToSign(text, secretAt: text.count))
        }
        // No parameter of the draft contains a character that would have to be decoded first, and comparing
        // whole pairs with `private_key` orders them by name.
        let before = kept.filter { $0 < "private_key" }.sorted() + ["private_key="]
        let after = kept.filter { $0 > "private_key" }.sorted()
        let text = before.joined(separator: "&")
        let whole = text + after.map { "&\($0)" }.joined()
        sign(kept, as: credentials, over: StringToSign(Array(whole.utf8), secretAt: text.utf8.count))
    }

    private mutating func sign(
        _ form: [Substring], as credentials: Credentials, over text: borrowing StringToSign
    ) {
        let mac = credentials.key.mac(.md5OverSecret, of: text)
        body = Array((form.joined(separator: "&") + "&sign=\(Hex.encode(mac.span))").utf8)
    }
}
