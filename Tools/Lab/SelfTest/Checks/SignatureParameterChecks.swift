import CountersignSchemes
import CountersignWire

extension SelfTestCheck {
    /// A signature's own parameters, changed after signing: time, nonce, key, algorithm, scope.
    static func signatureParameters(_ subject: SelfTestSubject) -> [SelfTestCheck] {
        let key: [SelfTestCheck] = [
            SelfTestCheck(
                "tamper-key-id", family: .tamper, sent: "a signed request under an unknown key id"
            ) {
                (inquiry) throws(OperationalError) in
                try inquiry.expectRefusal(as: [.unknownKey, .badSignature, .malformed]) {
                    (draft) throws(OperationalError) in
                    try inquiry.subject.signingScheme().replaceKeyID(by: "selftest-nobody", in: &draft)
                }
            }
        ]
        let changes = subject.scheme.selfTest?.parameterChanges ?? []
        return key
            + changes.map { change in
                SelfTestCheck(
                    change.name, family: .tamper,
                    sent: "a signed request whose \(change.parameter) was changed"
                ) {
                    (inquiry) throws(OperationalError) in
                    try inquiry.expectRefusal(
                        as: [.badSignature, .malformed, .unsigned], shape: .bare, change: change.change)
                }
            }
    }
}
