import CountersignSchemes
import CountersignSeal
import CountersignWire

/// The only scheme whose client chooses what is signed, and whose server signs responses.
struct MessageSignaturesSelfTest: SelfTestScheme {
    let name = SchemeName.messageSignatures
    let weaknesses = SelfTestWeaknesses()
    let signsFields = true
    let signsResponses = true

    var parameterChanges: [ParameterChange] {
        func input(after mark: String) -> SchemeLayout.Place {
            .within("signature-input", after: mark, ends: ";\")")
        }
        return [
            ParameterChange("tamper-created", of: "creation time", at: input(after: ";created=")) {
                Int64($0).map { String($0 + 1) } ?? "0"
            },
            ParameterChange(
                "tamper-nonce", of: "nonce", at: input(after: ";nonce=\""), to: "selftestselftestself"),
            ParameterChange(
                "tamper-alg", of: "algorithm", at: input(after: ";alg=\""), to: "ecdsa-p384-sha384"),
            ParameterChange("tamper-tag", of: "tag", at: input(after: ";tag=\""), to: "another"),
            ParameterChange(
                "tamper-components", of: "list of components", at: input(after: "app=(\"@"), to: "path"),
        ]
    }

    var ambiguityChecks: [SelfTestCheck] {
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

    func replaceKeyID(by other: String, in draft: inout Draft) throws(OperationalError) {
        try draft.replaceKeyID(of: name, by: other)
        draft.setField("Countersign-Release", to: other)
    }

    func addSignature(to draft: inout Draft) {
        for name in ["Signature-Input", "Signature"] {
            let value = draft.value(of: name) ?? ""
            draft.setField(
                name, to: "\(value), \(value.replacing("app=", with: "second=", maxReplacements: 1))")
        }
    }

    /// Adds markers of this scheme to a request of another one; the signature is invalid.
    static func addMarkers(to draft: inout Draft, at now: Int64) {
        draft.setField("Signature-Input", to: "app=(\"@method\");created=\(now);keyid=\"selftest\"")
        draft.setField("Signature", to: "app=:AAAA:")
    }

    var removeNonce: SignatureRenewal? {
        { (draft, subject) throws(OperationalError) in
            let nonce = draft.value(of: "Signature-Input")?.part(after: ";nonce=\"", upTo: ["\""]) ?? ""
            try draft.replace(";nonce=\"\(nonce)\"", by: "", inField: "Signature-Input")
            try draft.signAgain(as: subject)
        }
    }

    func removeCoverage(of part: OptionalPart) -> SignatureRenewal? {
        let component =
            switch part {
            case .query: "@query"
            case .body: "content-digest"
            }
        return { (draft, subject) throws(OperationalError) in
            try draft.replace(" \"\(component)\"", by: "", inField: "Signature-Input")
            try draft.signAgain(as: subject)
        }
    }
}

extension Draft {
    /// Signs what the present `Signature-Input` lists, whatever it leaves out.
    fileprivate mutating func signAgain(as subject: SelfTestSubject) throws(OperationalError) {
        setField("Signature", to: "app=::")
        do throws(Refusal) {
            let request = request()
            let scheme = MessageSignatures()
            var workspace = Workspace()
            guard let claim = try scheme.claim(in: request, workspace: &workspace) else {
                throw Refusal(.unsigned)
            }
            try scheme.writeStringToSign(for: claim, of: request, into: &workspace)
            let signature = try subject.credentials.key.sign(workspace.text)
            setField("Signature", to: "app=:\(Base64.encode(signature.span, as: .standard)):")
        } catch {
            throw OperationalError(.failed, message: "cannot be staged: \(error.detail)")
        }
    }
}
