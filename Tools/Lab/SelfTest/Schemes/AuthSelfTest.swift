import CountersignSchemes
import CountersignWire

// auth-v1, auth-v2 and auth-v4 are versions of one scheme: none has a nonce, signs fields or lets the client
// choose what is signed.

/// What the versions have in common.
protocol AuthSelfTest: SelfTestScheme {}

extension AuthSelfTest {
    var signsFields: Bool { false }
    var signsResponses: Bool { false }
    var removeNonce: SignatureRenewal? { nil }

    func removeCoverage(of part: OptionalPart) -> SignatureRenewal? { nil }
}

struct AuthV1SelfTest: AuthSelfTest {
    let name = SchemeName.authV1
    let weaknesses = SelfTestWeaknesses()

    var parameterChanges: [ParameterChange] {
        [
            ParameterChange("tamper-created", of: "timestamp", at: .parameter("auth_timestamp")) {
                (old) throws(OperationalError) in try old.withAnotherLastDigit()
            }
        ]
    }

    var ambiguityChecks: [SelfTestCheck] { [.duplicateParameter, AuthV1SelfTest.keyCase, .ampersandInValue] }

    private static let keyCase = SelfTestCheck(
        "key-case", family: .tamper, sent: "a signed parameter under its name in upper case"
    ) {
        (inquiry) throws(OperationalError) in
        try inquiry.expectWeakness("auth-v1 signs names in lower case", shape: .bare) {
            (draft) throws(OperationalError) in
            try draft.replaceInTarget("selftest=", by: "SELFTEST=")
        }
    }

    func addSignature(to draft: inout Draft) { draft.addQuerySignature() }
}

struct AuthV2SelfTest: AuthSelfTest {
    let name = SchemeName.authV2
    let weaknesses = SelfTestWeaknesses(body: "auth-v2 does not sign a body beside parameters in the query")
    /// Of its own parameters it signs the key id alone: see `new-timestamp`.
    let parameterChanges: [ParameterChange] = []

    var ambiguityChecks: [SelfTestCheck] {
        [
            .duplicateParameter,
            .newTimestamp { (draft, time) throws(OperationalError) in
                try draft.replacePart(at: .parameter("auth_timestamp"), by: time)
            },
        ]
    }

    func addSignature(to draft: inout Draft) { draft.addQuerySignature() }
}

struct AuthV4SelfTest: AuthSelfTest {
    let name = SchemeName.authV4
    let weaknesses = SelfTestWeaknesses()
    /// Of its own parameters it signs the key id alone: see `new-timestamp`.
    let parameterChanges: [ParameterChange] = []

    var ambiguityChecks: [SelfTestCheck] {
        [
            AuthV4SelfTest.duplicateMember,
            .newTimestamp { (draft, time) throws(OperationalError) in
                draft.setField("X-Auth-Timestamp", to: time)
            },
        ]
    }

    private static let duplicateMember = SelfTestCheck(
        "duplicate-member", family: .tamper, sent: "a signed JSON body with one member twice"
    ) {
        (inquiry) throws(OperationalError) in
        try inquiry.expectEitherRefused { (draft) throws(OperationalError) in
            try draft.replaceInBody("{", by: "{\"selftest\":\"another\",")
        } or: { (draft) throws(OperationalError) in
            try draft.replaceInBody("}", by: ",\"selftest\":\"another\"}")
        }
    }

    func addSignature(to draft: inout Draft) {
        let value = draft.value(of: "X-Auth-Signature") ?? ""
        draft.fields.append(Draft.Field(name: "X-Auth-Signature", value: value))
    }

    func addMarkersOfAnotherScheme(to draft: inout Draft, at now: Int64) {
        MessageSignaturesSelfTest.addMarkers(to: &draft, at: now)
    }

    /// Adds markers of this scheme to a request of another one; the signature is invalid.
    static func addMarkers(to draft: inout Draft, at now: Int64) {
        draft.setField("X-Auth-Version", to: "4")
        draft.setField("X-Auth-Client-ID", to: "selftest")
        draft.setField("X-Auth-Timestamp", to: String(now))
        draft.setField("X-Auth-Signature", to: String(repeating: "0", count: 64))
    }
}

extension SelfTestCheck {
    fileprivate static let duplicateParameter = SelfTestCheck(
        "duplicate-parameter", family: .tamper, sent: "a signed query with one parameter a second time"
    ) {
        (inquiry) throws(OperationalError) in
        try inquiry.expectEitherRefused(shape: .bare) { (draft) throws(OperationalError) in
            try draft.replaceInTarget("selftest=", by: "selftest=another&selftest=")
        } or: { (draft) throws(OperationalError) in
            draft.target += Array("&selftest=another".utf8)
        }
    }

    /// A request too old to be fresh, to which `restamp` gives a time in Unix seconds.
    fileprivate static func newTimestamp(
        restamp: @escaping @Sendable (inout Draft, String) throws(OperationalError) -> Void
    ) -> SelfTestCheck {
        SelfTestCheck("new-timestamp", family: .tamper, sent: "a signed request with a later timestamp") {
            (inquiry) throws(OperationalError) in
            var draft = try inquiry.signed(
                .withBody, at: inquiry.now - inquiry.subject.freshSeconds - 60)
            try restamp(&draft, String(inquiry.now))
            return inquiry.result(
                of: try inquiry.submit(draft),
                weakness: "\(inquiry.subject.scheme.rawValue) does not sign the timestamp")
        }
    }
}

extension Draft {
    fileprivate mutating func addQuerySignature() {
        target += Array("&auth_signature=\(String(repeating: "0", count: 64))".utf8)
    }
}
