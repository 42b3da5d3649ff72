import CountersignSeal
import CountersignWire

/// A second signature beside a session's, by the key that never leaves the device: for routes on which a
/// request key copied from the app's memory must not suffice. It covers the first signature, and with it
/// everything that the first one covers including its nonce, so that it cannot be moved to another request.
/// Source: RFC 9421 §4.3; docs/protocol.md, "Device-signed routes".
extension MessageSignatures {
    package static let deviceTag: StaticString = "countersign-device"

    /// The device's signature over the one labelled `label`, a slice of the head; nil if there is none. Its
    /// string to sign is written by ``writeStringToSign(for:of:into:)``, like any other. A device signature
    /// that does not cover the first signature is refused, because it would fit other requests too.
    package func deviceClaim(
        in request: Request, over label: ByteRange, workspace: inout Workspace
    ) throws(Refusal) -> Claim? {
        let claim: Claim
        do throws(Refusal) {
            claim = try readClaim(
                from: request, workspace: &workspace, rule: .tagged(MessageSignatures.deviceTag))
        } catch {
            if error.code == .unsigned { return nil }
            throw error
        }
        let head = request.head.span
        let list = workspace.part(SignatureInputBuffers.self).buffers.list
        let words = list.text
        for component in list.components {
            guard component.known == .signature, component.parameters == [.key],
                words.span.extracting(component.argument.range).matches(head.extracting(label.range))
            else { continue }
            return claim
        }
        throw Refusal(
            .badSignature,
            detail:
                "the device's signature does not cover \"signature\";"
                + "key=\"\(head.extracting(label.range).text)\""
        )
    }

    /// Adds the device's signature to a draft that ``sign(_:as:at:nonce:)`` has signed. `keyID` is the
    /// session's token; `sign` makes a signature of the algorithm `ecdsa-p256-sha256`, `r ‖ s`.
    package func addDeviceSignature(
        to draft: inout Draft, keyID: KeyID, at time: Int64, by sign: ([UInt8]) throws(Refusal) -> [UInt8]
    ) throws(Refusal) {
        guard let input = draft.value("Signature-Input"), let first = draft.value("Signature") else {
            throw Refusal(.malformed, detail: "a device signs only what its session has signed")
        }
        let parameters =
            "device=(\"signature\";key=\"app\");created=\(time);keyid=\"\(keyID.quotable)\";"
            + "alg=\"ecdsa-p256-sha256\""
            + ";tag=\"\(MessageSignatures.deviceTag)\""
        draft.setField("Signature-Input", to: "\(input), \(parameters)")
        draft.setField("Signature", to: "\(first), device=::")
        // Read back as a receiver would, as in ``sign(_:as:at:nonce:)``.
        let request = draft.request()
        var workspace = Workspace()
        let claim = try readClaim(
            from: request, workspace: &workspace, rule: .tagged(MessageSignatures.deviceTag))
        try writeStringToSign(for: claim, of: request, into: &workspace)
        let text = workspace.text.bytes.span.withUnsafeBufferPointer { Array($0) }
        let signature = try sign(text)
        draft.setField("Signature", to: "\(first), device=:\(Base64.encode(signature.span, as: .standard)):")
    }
}

extension Draft {
    /// The field's value, if present.
    fileprivate func value(_ name: String) -> String? {
        fields.first { $0.name == name }.flatMap { String(utf8: $0.value) }
    }
}
