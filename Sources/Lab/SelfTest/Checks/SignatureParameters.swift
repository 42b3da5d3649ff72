import CountersignSchemes
import CountersignWire

extension Check {
    /// What a signature says about itself, changed on its way: time, nonce, key, algorithm, scope.
    static func signatureParameters(_ subject: Subject) -> [Check] {
        let scheme = subject.scheme
        let key: [Check] = [
            Check("tamper-key-id", .tamper, "a signed request under a key id that nobody has") {
                (inquiry) throws(Fault) in
                try inquiry.refuses([.unknownKey, .badSignature, .malformed]) { (draft) throws(Fault) in
                    try draft.replaceKeyID(inquiry.subject)
                }
            }
        ]
        return key
            + changes(of: scheme).map { change in
                Check(change.name, .tamper, "a signed request whose \(change.what) was changed") {
                    (inquiry) throws(Fault) in
                    try inquiry.refuses(change.codes, change.shape) { (draft) throws(Fault) in
                        try draft.make(change, of: inquiry.subject.scheme)
                    }
                }
            }
    }

    /// One part of a signature's own words, and by what it is replaced.
    struct ParameterChange: Sendable {
        let name: String
        let what: String
        /// What stands before the value, in the field or parameter that holds the signature's words.
        let mark: String
        let value: String
        var codes: [Refusal.Code] = [.badSignature, .malformed, .unsigned]
        var shape = Shape.bare
    }

    private static func changes(of scheme: SchemeName) -> [ParameterChange] {
        switch scheme {
        case .messageSignatures:
            [
                ParameterChange(name: "tamper-created", what: "creation time", mark: ";created=", value: "0+"),
                ParameterChange(name: "tamper-nonce", what: "nonce", mark: ";nonce=\"", value: "selftestselftestself"),
                ParameterChange(name: "tamper-alg", what: "algorithm", mark: ";alg=\"", value: "ecdsa-p384-sha384"),
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
                ParameterChange(name: "tamper-version", what: "app version", mark: "&ver=", value: "0.selftest"),
            ]
        case .authV1:
            [ParameterChange(name: "tamper-created", what: "timestamp", mark: "auth_timestamp=", value: "0+")]
        // Neither signs more about itself than its key: see `new-timestamp`.
        case .authV2, .authV4, .token: []
        }
    }
}

extension Draft {
    fileprivate mutating func make(_ change: Check.ParameterChange, of scheme: SchemeName) throws(Fault) {
        switch scheme {
        case .messageSignatures:
            let old = try words(in: value(of: "Signature-Input") ?? "", change, [";", "\"", ")"])
            try replace("\(change.mark)\(old)", by: "\(change.mark)\(later(old, change))", inField: "Signature-Input")
        case .sigV4 where change.mark == "DATE":
            set("X-Amz-Date", try later(last: value(of: "X-Amz-Date") ?? "", before: "Z"))
        case .sigV4:
            let parts = (value(of: "Authorization") ?? "").split(separator: "/")
            guard parts.count > 2 else { throw Fault(.failed, "cannot be staged: no region is signed") }
            try replace("/\(parts[2])/", by: "/\(change.value)/", inField: "Authorization")
        case .formMD5, .authV1, .authV2, .authV4:
            let old = try words(in: text, change, ["&"])
            let new = change.value == "0+" ? try later(last: old, before: "") : change.value
            try replaceInTarget("\(change.mark)\(old)", by: "\(change.mark)\(new)")
        case .token: throw Fault(.failed, "cannot be staged: nothing is signed")
        }
    }

    private func words(
        in text: String, _ change: Check.ParameterChange, _ ends: Set<Character>
    ) throws(Fault) -> String {
        guard let old = text.part(after: change.mark, upTo: ends), !old.isEmpty else {
            throw Fault(.failed, "cannot be staged: no \(change.what) in `\(text)`")
        }
        return old
    }

    private func later(_ old: String, _ change: Check.ParameterChange) -> String {
        guard change.value == "0+" else { return change.value }
        return Int64(old).map { String($0 + 1) } ?? "0"
    }

    /// A time with another last digit: within the window, whatever that is.
    private func later(last old: String, before end: String) throws(Fault) -> String {
        let digits = old.dropLast(end.count)
        guard let last = digits.last?.wholeNumberValue else {
            throw Fault(.failed, "cannot be staged: `\(old)` is no time")
        }
        return digits.dropLast() + String(last == 0 ? 1 : last - 1) + end
    }

    /// The same signature under an id that nobody has.
    fileprivate mutating func replaceKeyID(_ subject: Subject) throws(Fault) {
        let id = "\(subject.credentials.keyID)"
        let other = "selftest-nobody"
        switch subject.scheme {
        case .messageSignatures:
            try replace("keyid=\"\(id)\"", by: "keyid=\"\(other)\"", inField: "Signature-Input")
            set("Countersign-Release", other)
        case .sigV4: try replace("Credential=\(id)/", by: "Credential=\(other)/", inField: "Authorization")
        case .formMD5: try replaceInBody("app_id=\(id)", by: "app_id=\(other)")
        case .authV1: try replaceInTarget("auth_key=\(id)", by: "auth_key=\(other)")
        case .authV2: try replaceInTarget("auth_client_id=\(id)", by: "auth_client_id=\(other)")
        case .authV4: set("X-Auth-Client-ID", other)
        case .token: throw Fault(.failed, "cannot be staged: no key is named")
        }
    }
}
