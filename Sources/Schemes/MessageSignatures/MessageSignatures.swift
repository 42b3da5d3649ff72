import CountersignSeal
import CountersignWire

/// HTTP Message Signatures. Source: RFC 9421; for bodies RFC 9530.
package struct MessageSignatures: Scheme {
    /// What signing covers beyond what it covers anyhow: component identifiers as a signature base writes them.
    private(set) var additional: [String] = []

    package init() {}

    package init(alsoCovering identifiers: [String]) { additional = identifiers }

    package var name: SchemeName { .messageSignatures }
    package var dialect: AnswerDialect { .problem }

    package var coverage: Coverage {
        Coverage(
            covered: [.method, .authority, .path, .query, .body, .namedFields, .signatureParameters],
            uncovered: [.transport, .otherFields, .fieldLines, .emptyQuery])
    }

    package func trace(in request: Request, names: ParameterNames) -> Trace {
        MessageSignatures.signs(request) ? .present : .absent
    }

    private static func signs(_ request: Request) -> Bool {
        request.names.contains(.signatureInput) || request.names.contains(.signature)
    }

    package func claim(
        in request: Request, names: ParameterNames, _ workspace: inout Workspace
    ) throws(Refusal) -> Claim? {
        guard MessageSignatures.signs(request) else { return nil }
        return try read(request, &workspace, .byTag)
    }

    package func claim(
        in request: Request, labelled label: String, _ workspace: inout Workspace
    ) throws(Refusal) -> Claim? {
        guard MessageSignatures.signs(request) else { return nil }
        return try read(request, &workspace, .labelled(label))
    }

    func read(
        _ request: Request, _ workspace: inout Workspace, _ rule: SignatureInput.Rule
    ) throws(Refusal) -> Claim {
        guard request.fields.count <= FieldSet.limit else { throw Refusal(.malformed, "more than 128 fields") }
        try SignatureInput.read(request, &workspace, rule)
        let input = workspace.signature
        guard let named = input.keyID, let keyID = KeyID(quoted: request.head.span.extracting(named.range)) else {
            throw Refusal(.malformed, "Signature-Input: expected a keyid of 1 to 64 visible characters")
        }
        let signature = try MessageSignatures.signature(labelled: input.label, in: request, &workspace)
        let claim = Claim(scheme: name, keyID: keyID, algorithm: .ofKey, mac: signature.short)
        claim.holder = Claim.Holder(of: keyID)
        claim.longSignature = signature.long
        claim.namedAlgorithm = try input.namedAlgorithm(in: request)
        claim.label = input.label
        claim.choice = input.isOneOfSeveral ? .open : .made
        claim.created = input.created.map(Claim.Created.unix) ?? .unsigned
        claim.expires = input.expires
        if let nonce = input.nonce {
            guard !nonce.isEmpty else { throw Refusal(.malformed, "Signature-Input: expected a nonce with characters") }
            let bytes = request.head.span.extracting(nonce.range)
            // A long nonce is remembered by its digest: all that matters is whether two are the same.
            claim.replay = .nonce(Claim.ReplayKey(bytes) ?? Claim.ReplayKey(SHA256.digest(bytes)))
        }
        try cover(request, claim, &workspace)
        return claim
    }
}

extension SignatureInput {
    /// What `alg` says; nil without one. A name that no key here can have contradicts every key.
    func namedAlgorithm(in message: Request) throws(Refusal) -> KeyAlgorithm? {
        guard let algorithm else { return nil }
        let name = message.head.span.extracting(algorithm.range)
        guard let known = KeyAlgorithm(name) else {
            throw Refusal(.badSignature, "alg: the message says \"\(name.text)\", which no key here is for")
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
        self = SessionToken(keyID.bytes).map { .session($0) } ?? .nobody
    }
}
