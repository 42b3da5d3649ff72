import CountersignSeal
import CountersignWire

extension MessageSignatures {
    /// Covers everything that reaches the other end: what proxies add or change on the way is left out.
    package func sign(_ draft: inout Draft, as credentials: Credentials, at: Int64, nonce: String) throws(Refusal) {
        draft.set("Countersign-Release", (credentials.release ?? credentials.keyID).description)
        if let streamed = draft.streamed {
            guard case .sha256(let digest) = streamed.digest else {
                throw Refusal(.malformed, "a body that streams: expected its SHA-256")
            }
            draft.set("Content-Digest", ContentDigest.value(sha256: digest.span))
        } else if !draft.body.isEmpty {
            draft.set("Content-Digest", ContentDigest.value(for: draft.body.span))
        }
        let algorithm = credentials.key.algorithm.rawValue
        var list = #""@method" "@authority" "@path" "@query""#
        for (index, field) in draft.fields.enumerated() {
            let name = field.name.lowercased()
            // Fields of one name are one component.
            guard !MessageSignatures.isLeftOut(name), !draft.fields[..<index].contains(where: { $0.isNamed(name) })
            else { continue }
            list += " \"\(name)\""
        }
        for component in additional { list += " \(component)" }
        let keyID = credentials.keyID.quotable
        draft.set(
            "Signature-Input",
            "app=(\(list));created=\(at);nonce=\"\(nonce)\";keyid=\"\(keyID)\";alg=\"\(algorithm)\";tag=\"countersign\""
        )
        // Read back as a receiver would: what does not parse must not be signed.
        draft.set("Signature", "app=::")
        let request = draft.request()
        var workspace = Workspace()
        guard let claim = try claim(in: request, &workspace) else { throw Refusal(.malformed, "nothing to sign") }
        try spell(claim, request, &workspace)
        let signature = try credentials.key.sign(workspace.text)
        draft.set("Signature", "app=:\(Base64.encode(signature.span, .standard)):")
    }

    private static func isLeftOut(_ name: String) -> Bool {
        switch name {
        case "accept", "user-agent", "traceparent", "signature", "signature-input", "host", "content-length", "te",
            "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade", "trailer", "expect":
            true
        default: name.hasPrefix("accept-") || name.hasPrefix("proxy-")
        }
    }
}
