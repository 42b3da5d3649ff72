import CountersignSeal
import CountersignWire

extension SigV4 {
    /// The header form. Covers everything that reaches the other end: what proxies add or change on the way
    /// is left out.
    package func sign(_ draft: inout Draft, as credentials: Credentials, at: Int64, nonce: String)
        throws(Refusal)
    {
        let time = try SigV4.timestamp(at)
        draft.fields.removeAll { ["date", "authorization"].contains($0.name.lowercased()) }
        draft.setField("X-Amz-Date", to: time)
        // With it, a body that is too large to be held can be checked as it streams by.
        if !draft.body.isEmpty,
            !draft.fields.contains(where: { $0.name.lowercased() == "x-amz-content-sha256" })
        {
            draft.setField("X-Amz-Content-Sha256", to: Hex.encode(SHA256.digest(draft.body.span).span))
        }
        let start =
            "AWS4-HMAC-SHA256 Credential=\(SigV4.credential(of: credentials, time: time)), "
            + "SignedHeaders=\(SigV4.signedFields(of: draft)), Signature="
        draft.setField("Authorization", to: start + SigV4.noSignature)
        draft.setField("Authorization", to: start + (try signature(of: draft, credentials: credentials)))
    }

    /// A presigned URL, good for `lifetime` seconds: the signature goes to the query, and the fields that are
    /// in the draft must be sent as they are.
    package func presign(
        _ draft: inout Draft, as credentials: Credentials, at: Int64, lifetime: Int64
    ) throws(Refusal) {
        let time = try SigV4.timestamp(at)
        draft.fields.removeAll { ["date", "x-amz-date", "authorization"].contains($0.name.lowercased()) }
        var added: [UInt8] = []
        for (name, value) in [
            ("X-Amz-Algorithm", "AWS4-HMAC-SHA256"),
            ("X-Amz-Credential", SigV4.credential(of: credentials, time: time)),
            ("X-Amz-Date", time), ("X-Amz-Expires", String(lifetime)),
            ("X-Amz-SignedHeaders", SigV4.signedFields(of: draft)),
        ] { Form.append(name, value: Array(value.utf8).span, to: &added) }
        let hasQuery = draft.target.contains(UInt8(ascii: "?"))
        let isOpen = draft.target.last == UInt8(ascii: "?")
        draft.target += (isOpen ? [] : [hasQuery ? UInt8(ascii: "&") : UInt8(ascii: "?")]) + added
        let unsigned = draft.target
        draft.target = unsigned + Array("&X-Amz-Signature=\(SigV4.noSignature)".utf8)
        draft.target =
            unsigned + Array("&X-Amz-Signature=\(try signature(of: draft, credentials: credentials))".utf8)
    }

    private static let noSignature = String(repeating: "0", count: 64)

    /// Read back as a receiver would: what does not parse must not be signed.
    private func signature(of draft: Draft, credentials: Credentials) throws(Refusal) -> String {
        let request = draft.request()
        var workspace = Workspace()
        guard let claim = try claim(in: request, workspace: &workspace) else {
            throw Refusal(.malformed, detail: "nothing to sign")
        }
        try writeStringToSign(for: claim, of: request, into: &workspace)
        return Hex.encode(credentials.key.mac(.sigV4, of: workspace.text).span)
    }

    private static func timestamp(_ at: Int64) throws(Refusal) -> String {
        guard (0..<253_402_300_800).contains(at) else {
            throw Refusal(.malformed, detail: "time: expected a year up to 9999")
        }
        var text = ByteBuffer(capacity: 16)
        CivilTime(seconds: at).appendBasic(to: &text)
        return text.text
    }

    private static func credential(of credentials: Credentials, time: String) -> String {
        "\(credentials.keyID)/\(time.prefix(8))/\(credentials.region)/\(credentials.service)/aws4_request"
    }

    private static func signedFields(of draft: Draft) -> String {
        let names = draft.fields.map { $0.name.lowercased() }.filter { !isLeftOut($0) } + ["host"]
        return Set(names).sorted { Array($0.utf8).span.isBefore(Array($1.utf8).span) }.joined(separator: ";")
    }

    private static func isLeftOut(_ name: String) -> Bool {
        switch name {
        case "accept", "user-agent", "traceparent", "authorization", "host", "content-length", "te",
            "connection",
            "keep-alive", "transfer-encoding", "upgrade", "trailer", "expect":
            true
        default: name.hasPrefix("accept-") || name.hasPrefix("proxy-")
        }
    }
}
