import CountersignSeal
import CountersignWire

/// HTTP Message Signatures with hmac-sha256. Source: RFC 9421; for bodies RFC 9530.
package struct MessageSignatures: Scheme {
    package init() {}

    package var name: SchemeName { .messageSignatures }
    package var dialect: AnswerDialect { .problem }

    package var coverage: Coverage {
        Coverage(
            covered: [.method, .authority, .path, .query, .body, .namedFields, .signatureParameters],
            uncovered: [.transport, .otherFields])
    }

    package func trace(in request: Request) -> Trace {
        request.names.contains(.signatureInput) || request.names.contains(.signature) ? .present : .absent
    }

    package func claim(in request: Request, _ workspace: inout Workspace) throws(Refusal) -> Claim? {
        guard trace(in: request) == .present else { return nil }
        guard request.fields.count <= FieldSet.limit else { throw Refusal(.malformed, "more than 128 fields") }
        try SignatureInput.read(request, &workspace)
        let input = workspace.signature
        guard let named = input.keyID, let keyID = KeyID(request.head.span.extracting(named.range)) else {
            throw Refusal(.malformed, "Signature-Input: expected a keyid of 1 to 64 visible characters")
        }
        if let algorithm = input.algorithm, !request.matches(algorithm, "hmac-sha256") {
            throw Refusal(.badSignature, "alg: expected \"hmac-sha256\", which the key is for")
        }
        let mac = try signature(labelled: input.label, in: request)
        var claim = Claim(scheme: name, keyID: keyID, algorithm: .hmacSHA256, mac: mac)
        claim.created = input.created.map(Claim.Created.unix) ?? .unsigned
        claim.expires = input.expires
        if let nonce = input.nonce {
            guard !nonce.isEmpty else { throw Refusal(.malformed, "Signature-Input: expected a nonce with characters") }
            let bytes = request.head.span.extracting(nonce.range)
            // A long nonce is remembered by its digest: all that matters is whether two are the same.
            claim.replay = .nonce(Claim.ReplayKey(bytes) ?? Claim.ReplayKey(SHA256.digest(bytes)))
        }
        try cover(request, &claim, &workspace)
        return claim
    }

    /// The signature of that label. Source: RFC 9421 §4.2.
    private func signature(labelled label: Slice, in request: Request) throws(Refusal) -> MAC {
        var found: MAC?
        let bytes = request.head.span
        let label = bytes.extracting(label.range)
        for field in request.fields where field.known == .signature {
            var reader = StructuredField(bytes.extracting(field.value.range))
            do throws(StructuredField.Problem) {
                while let key = try reader.nextMember() {
                    guard reader.bytes.extracting(key.range).matches(label) else {
                        try reader.skipMemberValue()
                        continue
                    }
                    guard found == nil else { throw reader.problem("each label once") }
                    guard reader.takeEquals(), case .bytes(let text) = try reader.bareItem(),
                        let mac = Base64.decodeShort(reader.bytes.extracting(text.range), .standard)
                    else { throw reader.problem("a signature of at most 64 bytes in Base64 between colons") }
                    try reader.skipParameters()
                    found = mac
                }
            } catch {
                throw Refusal(error, in: "Signature")
            }
        }
        guard let found else {
            throw Refusal(.malformed, "Signature: expected a member \"\(label.text)\", which Signature-Input names")
        }
        return found
    }
}
