import CountersignAuthority
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// The key that signs deliveries, and the next one. Receivers know both, so that a rotation needs no change
/// there.
package struct WebhookKeys: Sendable {
    let signer: Ed25519.Signer
    package let current: JWK
    package let next: JWK

    package init(_ seeds: WebhookSeeds) throws(OperationalError) {
        guard let signer = Ed25519.Signer(seed: seeds.current),
            let following = AnswerKey.publicHalf(of: seeds.next)
        else { throw OperationalError(.failed, message: "webhook key: not an Ed25519 seed") }
        self.signer = signer
        current = JWK(publicHalf: signer.publicHalf)
        next = JWK(publicHalf: following)
    }

    /// The public halves. Source: RFC 7517 §5.
    package var json: JSONValue { ["keys": [current.json, next.json]] }

    /// The fields of a signed delivery. Source: RFC 9421 §3.1; RFC 9530 for the digest.
    func fields(
        of body: [UInt8], event: String, sentTo uri: String, at now: Int64
    ) -> [(name: String, value: String)] {
        let type = "application/json"
        let digest = "sha-256=:\(Base64.encode(SHA256.digest(body.span).span, as: .standard)):"
        let parameters =
            #"("@method" "@target-uri" "content-type" "content-digest" "countersign-event")"#
            + #";created=\#(now);keyid="\#(current.id)";alg="ed25519";tag="countersign-webhook""#
        let base = """
            "@method": POST
            "@target-uri": \(uri)
            "content-type": \(type)
            "content-digest": \(digest)
            "countersign-event": \(event)
            "@signature-params": \(parameters)
            """
        let signature = signer.sign(Array(base.utf8).span)
        return [
            ("Content-Type", type), ("Content-Digest", digest), ("Countersign-Event", event),
            ("Signature-Input", "countersign=\(parameters)"),
            ("Signature", "countersign=:\(Base64.encode(signature.span, as: .standard)):"),
        ]
    }
}
