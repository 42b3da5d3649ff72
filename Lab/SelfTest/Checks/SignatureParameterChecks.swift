import CountersignSchemes
import CountersignWire

extension SelfTestCheck {
    /// A signature's own parameters, changed after signing: time, nonce, key, algorithm, scope.
    static func signatureParameters(_ subject: SelfTestSubject) -> [SelfTestCheck] {
        let scheme = subject.scheme
        let key: [SelfTestCheck] = [
            SelfTestCheck(
                "tamper-key-id", family: .tamper, sent: "a signed request under a key id that nobody has"
            ) {
                (inquiry) throws(OperationalError) in
                try inquiry.expectRefusal(as: [.unknownKey, .badSignature, .malformed]) {
                    (draft) throws(OperationalError) in
                    try draft.replaceKeyID(inquiry.subject)
                }
            }
        ]
        return key
            + changes(of: scheme).map { change in
                SelfTestCheck(
                    change.name, family: .tamper, sent: "a signed request whose \(change.what) was changed"
                ) {
                    (inquiry) throws(OperationalError) in
                    try inquiry.expectRefusal(as: change.codes, shape: change.shape) {
                        (draft) throws(OperationalError) in
                        try draft.make(change, of: inquiry.subject.scheme)
                    }
                }
            }
    }

    /// One parameter of a signature, and its replacement.
    struct ParameterChange: Sendable {
        let name: String
        let what: String
        /// The text before the value, in the field or parameter that carries the signature's parameters.
        let mark: String
        let value: String
        var codes: [Refusal.Code] = [.badSignature, .malformed, .unsigned]
        var shape = RequestShape.bare
    }

    private static func changes(of scheme: SchemeName) -> [ParameterChange] {
        switch scheme {
        case .messageSignatures:
            [
                ParameterChange(
                    name: "tamper-created", what: "creation time", mark: ";created=", value: "0+"),
                ParameterChange(
                    name: "tamper-nonce", what: "nonce", mark: ";nonce=\"", value: "selftestselftestself"),
                ParameterChange(
                    name: "tamper-alg", what: "algorithm", mark: ";alg=\"", value: "ecdsa-p384-sha384"),
                ParameterChange(name: "tamper-tag", what: "tag", mark: ";tag=\"", value: "another"),
                ParameterChange(
                    name: "tamper-components", what: "list of components", mark: "app=(\"@", value: "path"),
            ]
        case .sigV4:
            [
                ParameterChange(name: "tamper-region", what: "region", mark: "/REGION", value: "elsewhere"),
                ParameterChange(name: "tamper-created", what: "time", mark: "DATE", value: "0+"),
            ]
        case .formMD5:
            [
                ParameterChange(name: "tamper-created", what: "timestamp", mark: "timestamp=", value: "0+"),
                ParameterChange(name: "tamper-nonce", what: "rand", mark: "rand=", value: "selftestselftest"),
                ParameterChange(
                    name: "tamper-version", what: "app version", mark: "&ver=", value: "0.selftest"),
            ]
        case .authV1:
            [ParameterChange(name: "tamper-created", what: "timestamp", mark: "auth_timestamp=", value: "0+")]
        // None of these signs more of its own parameters than the key: see `new-timestamp`.
        case .authV2, .authV4, .token: []
        }
    }
}

extension Draft {
    fileprivate mutating func make(_ change: SelfTestCheck.ParameterChange, of scheme: SchemeName)
        throws(OperationalError)
    {
        switch scheme {
        case .messageSignatures:
            let old = try oldValue(
                in: value(of: "Signature-Input") ?? "", change: change, upTo: [";", "\"", ")"])
            try replace(
                "\(change.mark)\(old)", by: "\(change.mark)\(newValue(for: old, change: change))",
                inField: "Signature-Input")
        case .sigV4 where change.mark == "DATE":
            setField("X-Amz-Date", to: try later(last: value(of: "X-Amz-Date") ?? "", before: "Z"))
        case .sigV4:
            let parts = (value(of: "Authorization") ?? "").split(separator: "/")
            guard parts.count > 2 else {
                throw OperationalError(.failed, message: "cannot be staged: no region is signed")
            }
            try replace("/\(parts[2])/", by: "/\(change.value)/", inField: "Authorization")
        case .formMD5, .authV1, .authV2, .authV4:
            let old = try oldValue(in: text, change: change, upTo: ["&"])
            let new = change.value == "0+" ? try later(last: old, before: "") : change.value
            try replaceInTarget("\(change.mark)\(old)", by: "\(change.mark)\(new)")
        case .token: throw OperationalError(.failed, message: "cannot be staged: nothing is signed")
        }
    }

    private func oldValue(
        in text: String, change: SelfTestCheck.ParameterChange, upTo ends: Set<Character>
    ) throws(OperationalError) -> String {
        guard let old = text.part(after: change.mark, upTo: ends), !old.isEmpty else {
            throw OperationalError(.failed, message: "cannot be staged: no \(change.what) in `\(text)`")
        }
        return old
    }

    private func newValue(for old: String, change: SelfTestCheck.ParameterChange) -> String {
        guard change.value == "0+" else { return change.value }
        return Int64(old).map { String($0 + 1) } ?? "0"
    }

    /// A time with another last digit, which stays within any window.
    private func later(last old: String, before end: String) throws(OperationalError) -> String {
        let digits = old.dropLast(end.count)
        guard let last = digits.last?.wholeNumberValue else {
            throw OperationalError(.failed, message: "cannot be staged: `\(old)` is no time")
        }
        return digits.dropLast() + String(last == 0 ? 1 : last - 1) + end
    }

    /// The same signature with the id of no key.
    fileprivate mutating func replaceKeyID(_ subject: SelfTestSubject) throws(OperationalError) {
        let id = "\(subject.credentials.keyID)"
        let other = "selftest-nobody"
        switch subject.scheme {
        case .messageSignatures:
            try replace("keyid=\"\(id)\"", by: "keyid=\"\(other)\"", inField: "Signature-Input")
            setField("Countersign-Release", to: other)
        case .sigV4: try replace("Credential=\(id)/", by: "Credential=\(other)/", inField: "Authorization")
        case .formMD5: try replaceInBody("app_id=\(id)", by: "app_id=\(other)")
        case .authV1: try replaceInTarget("auth_key=\(id)", by: "auth_key=\(other)")
        case .authV2: try replaceInTarget("auth_client_id=\(id)", by: "auth_client_id=\(other)")
        case .authV4: setField("X-Auth-Client-ID", to: other)
        case .token: throw OperationalError(.failed, message: "cannot be staged: no key is named")
        }
    }
}
