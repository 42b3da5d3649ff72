import CountersignSchemes
import CountersignWire

/// Signs fields; has no nonce.
struct SigV4SelfTest: SelfTestScheme {
    let name = SchemeName.sigV4
    let weaknesses = SelfTestWeaknesses()
    let signsFields = true
    let signsResponses = false
    let ambiguityChecks: [SelfTestCheck] = []

    var parameterChanges: [ParameterChange] {
        [
            ParameterChange("tamper-region", of: "region") { (draft) throws(OperationalError) in
                // Credential=ID/DATE/REGION/SERVICE/aws4_request.
                let parts = (draft.value(of: "Authorization") ?? "").split(separator: "/")
                guard parts.count > 2 else {
                    throw OperationalError(.failed, message: "cannot be staged: no region is signed")
                }
                try draft.replace("/\(parts[2])/", by: "/elsewhere/", inField: "Authorization")
            },
            ParameterChange("tamper-created", of: "time", at: .field("x-amz-date")) {
                (old) throws(OperationalError) in try old.withAnotherLastDigit(before: "Z")
            },
        ]
    }

    func addSignature(to draft: inout Draft) {
        let value = draft.value(of: "Authorization") ?? ""
        draft.fields.append(Draft.Field(name: "Authorization", value: value))
    }

    var removeNonce: SignatureRenewal? { nil }

    func removeCoverage(of part: OptionalPart) -> SignatureRenewal? { nil }
}
