import CountersignSeal
import CountersignWire

/// HTTP Message Signatures. Source: RFC 9421; for bodies RFC 9530.
package struct MessageSignatures: Scheme {
    /// What signing covers beyond what it covers anyhow: component identifiers as a signature base writes
    /// them.
    private(set) var additional: [String] = []

    package init() {}

    package init(alsoCovering identifiers: [String]) { additional = identifiers }

    package var name: SchemeName { .messageSignatures }
    package var dialect: ResponseDialect { .problem }
    package var evidence: SchemeEvidence {
        SchemeEvidence(fields: FieldNames(.signature, .signatureInput))
    }

    package var coverage: Coverage {
        Coverage(
            covered: [.method, .authority, .path, .query, .body, .namedFields, .signatureParameters],
            uncovered: [.transport, .otherFields, .fieldLines, .emptyQuery])
    }

    package func detect(in request: Request, names: RequestParameterNames) -> SchemeDetection {
        MessageSignatures.signs(request) ? .present : .absent
    }

    private static func signs(_ request: Request) -> Bool {
        request.names.contains(.signatureInput) || request.names.contains(.signature)
    }

    package func claim(
        in request: Request, names: RequestParameterNames, workspace: inout Workspace
    ) throws(Refusal) -> Claim? {
        guard MessageSignatures.signs(request) else { return nil }
        return try readClaim(from: request, workspace: &workspace, rule: .byTag)
    }

    package func claim(
        in request: Request, labelled label: String, workspace: inout Workspace
    ) throws(Refusal) -> Claim? {
        guard MessageSignatures.signs(request) else { return nil }
        return try readClaim(from: request, workspace: &workspace, rule: .labelled(label))
    }

    func readClaim(
        from request: Request, workspace: inout Workspace, rule: SignatureInput.SelectionRule
    ) throws(Refusal) -> Claim {
        guard request.fields.count <= FieldSet.limit else {
            throw Refusal(.malformed, detail: "more than 128 fields")
        }
        let part = workspace.part(SignatureInputBuffers.self)
        try SignatureInput.read(from: request, into: part, rule: rule)
        let input = part.buffers.input
        guard let named = input.keyID, let keyID = KeyID(quoted: request.head.span.extracting(named.range))
        else {
            throw Refusal(
                .malformed, detail: "Signature-Input: expected a keyid of 1 to 64 visible characters")
        }
        let signature = try MessageSignatures.signature(
            labelled: input.label, in: request, workspace: &workspace)
        let claim = Claim.make(
            name, keyID: keyID, algorithm: .ofKey, mac: signature.short,
            reusing: workspace.spareClaim.take())
        claim.holder = Claim.Holder(of: keyID)
        claim.longSignature = signature.long
        claim.namedAlgorithm = try input.namedAlgorithm(in: request)
        claim.label = input.label
        claim.selection = input.isOneOfSeveral ? .ambiguous : .definite
        claim.created = input.created.map(Claim.CreationTime.unix) ?? .unsigned
        claim.expires = input.expires
        if let nonce = input.nonce {
            guard !nonce.isEmpty else {
                throw Refusal(.malformed, detail: "Signature-Input: expected a nonce with characters")
            }
            let bytes = request.head.span.extracting(nonce.range)
            // A long nonce is remembered by its digest: all that matters is whether two are the same.
            claim.replay = .nonce(Claim.ReplayKey(bytes) ?? Claim.ReplayKey(SHA256.digest(bytes)))
        }
        try resolveComponents(of: request, claim: claim, list: part.buffers.list)
        return claim
    }
}

extension SignatureInput {
    /// What `alg` says; nil without one. A name that no key here can have contradicts every key.
    func namedAlgorithm(in message: Request) throws(Refusal) -> KeyAlgorithm? {
        guard let algorithm else { return nil }
        let name = message.head.span.extracting(algorithm.range)
        guard let known = KeyAlgorithm(name) else {
            throw Refusal(
                .badSignature, detail: "alg: the message says \"\(name.text)\", which no key here is for")
        }
        return known
    }
}

extension Claim.Holder {
    /// Source: docs/protocol.md, "Sessions".
    init(of keyID: KeyID) {
        guard SessionToken.begins(keyID.bytes) else {
            self = .release
            return
        }
        self = SessionToken(keyID.bytes).map { .session($0) } ?? .unknown
    }
}

extension MessageSignatures {
    package func sign(_ draft: inout Draft, as credentials: Credentials, at time: Int64, nonce: String)
        throws(Refusal)
    {
        var workspace = Workspace()
        try sign(&draft, as: credentials, at: time, nonce: nonce, workspace: &workspace)
    }

    /// Covers everything that reaches the other end: what proxies add or change on the way is left out.
    ///
    /// A workspace that has signed such a request before reads the list of components from memory.
    package func sign(
        _ draft: inout Draft, as credentials: Credentials, at time: Int64, nonce: String,
        workspace: inout Workspace
    ) throws(Refusal) {
        _ = try sign(&draft, as: credentials, at: time, nonce: nonce, workspace: &workspace, by: .direct)
    }

    /// How a request is signed: from its fields, or from its fields as a receiver reads them.
    enum SigningWay { case direct, readBack }

    /// Signs by `way`, or by ``SigningWay/readBack`` what cannot be signed directly; returns the way that was
    /// taken.
    func sign(
        _ draft: inout Draft, as credentials: Credentials, at time: Int64, nonce: String,
        workspace: inout Workspace, by way: SigningWay
    ) throws(Refusal) -> SigningWay {
        draft.setField("Countersign-Release", to: (credentials.release ?? credentials.keyID).description)
        if let streamed = draft.streamed {
            guard case .sha256(let digest) = streamed.digest else {
                throw Refusal(.malformed, detail: "a body that streams: expected its SHA-256")
            }
            draft.setField("Content-Digest", to: ContentDigest.value(sha256: digest.span))
        } else if !draft.body.isEmpty {
            draft.setField("Content-Digest", to: ContentDigest.value(for: draft.body.span))
        }
        if way == .direct,
            try signDirectly(&draft, as: credentials, at: time, nonce: nonce, workspace: &workspace)
        {
            return .direct
        }
        draft.setField(
            "Signature-Input", bytes: signatureInput(of: draft, as: credentials, at: time, nonce: nonce))
        // Read back as a receiver would: what does not parse must not be signed.
        draft.setField("Signature", to: "app=::")
        let request = draft.request()
        let claim = try readClaim(from: request, workspace: &workspace, rule: .byTag)
        try writeStringToSign(for: claim, of: request, into: &workspace)
        let signature = try credentials.key.sign(workspace.text)
        workspace.spareClaim = claim
        draft.setField("Signature", to: "app=:\(Base64.encode(signature.span, as: .standard)):")
        return .readBack
    }

    private func signatureInput(
        of draft: Draft, as credentials: Credentials, at time: Int64, nonce: String
    ) -> [UInt8] {
        var text = ByteBuffer(capacity: 512)
        text.append("app=(\"@method\" \"@authority\" \"@path\" \"@query\"")
        for (index, field) in draft.fields.enumerated() {
            let end = text.count
            text.append(" \"")
            text.append(lowercasing: field.name)
            // Fields of one name are one component.
            if MessageSignatures.isLeftOut(text.span.extracting((end + 2)...))
                || draft.fields[..<index].contains(where: { $0.isNamed(field.name) })
            {
                text.cut(to: end)
            } else {
                text.append(UInt8(ascii: "\""))
            }
        }
        for component in additional {
            text.append(UInt8(ascii: " "))
            text.append(component)
        }
        text.append(");created=")
        text.append(decimal: time)
        text.append(";nonce=\"")
        text.append(nonce)
        text.append("\";keyid=\"")
        text.append(credentials.keyID.quotable)
        text.append("\";alg=\"")
        text.append(credentials.key.algorithm.rawValue)
        text.append("\";tag=\"countersign\"")
        return text.array
    }

    /// `name` is in lower case.
    static func isLeftOut(_ name: borrowing Span<UInt8>) -> Bool {
        let identity = FieldIdentity(exactly: name)
        switch identity.name {
        case .signature, .signatureInput: return true
        default: break
        }
        if identity.traits.contains(.isHarmless) { return true }
        if identity.traits.contains(.endsAtHop) { return !name.matches("http2-settings") }
        return name.count >= 6 && name.extracting(0..<6).matches("proxy-")
    }
}

extension MessageSignatures {
    /// Appends the value of `Accept-Signature` that asks for what the gate wants of `request`: the least,
    /// with what the app's policy adds, of the fields that are there or must be. `nonce` is new, for the
    /// signer to use once. Source: RFC 9421 §5.1.
    package static func appendAcceptSignature(
        for request: Request, alsoCovering fields: [String], keyID: KeyID?, nonce: Span<UInt8>,
        to text: inout ByteBuffer
    ) {
        let start = text.count
        text.append("app=(\"@method\" \"@authority\" \"@path\" \"@query\" \"countersign-release\"")
        if request.framing != .none { text.append(" \"content-digest\"") }
        if request.names.contains(.contentType) { text.append(" \"content-type\"") }
        if request.names.contains(.idempotencyKey) { text.append(" \"idempotency-key\"") }
        for field in fields where !text.span.extracting(start...).text.contains("\"\(field)\"") {
            text.append(" \"\(field)\"")
        }
        text.append(");created;nonce=\"")
        text.append(nonce)
        if let keyID {
            text.append("\";keyid=\"")
            text.append(keyID.quotable)
        }
        text.append("\";tag=\"countersign\"")
    }
}

extension MessageSignatures: SchemeDefinition {
    package static var traits: SchemeTraits {
        SchemeTraits(
            replayNumber: 1, purpose: .current, defaultWindow: 60, replayDetection: .perKey)
    }

    package static var layout: SchemeLayout? {
        SchemeLayout(
            signature: [.within("signature", after: "=", ends: ",;")],
            keyID: [.within("signature-input", after: ";keyid=\"", ends: "\"")],
            encoding: .byteSequence, lines: .named)
    }
}
