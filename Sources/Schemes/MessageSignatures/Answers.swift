import CountersignSeal
import CountersignWire

/// Signatures on answers, bound to the request that is answered. Source: RFC 9421 §2.4; docs/protocol.md, "Answers".
extension MessageSignatures {
    /// The `keyid` of the deployment's own answer key.
    package static let authorityKeyID = "authority"

    /// What an answer's signature binds it to.
    package enum Binding: Sendable {
        /// The signature of the request that is answered, and the method and target that it came with: a route that judges no
        /// signatures could otherwise be made to answer for one that does.
        case request
        /// Nothing but its own content, in which the caller then finds what he asked with.
        case content
    }

    private static let requestComponents = [
        "\"@method\";req", "\"@path\";req", "\"@query\";req", "\"signature\";req", "\"signature-input\";req",
    ]

    /// The fields that sign an answer: `Content-Digest`, `Signature-Input` and `Signature`. `fields` of the answer are covered
    /// too. `at` is in whole Unix seconds. Nil where the request bears no signature, to which the answer could be bound.
    package func sign(
        status: Int, body: [UInt8], alsoCovering fields: [Draft.Field] = [], answering request: Request,
        as credentials: Credentials, at: Int64
    ) throws(Refusal) -> [Draft.Field]? {
        guard request.names.contains(.signature), request.names.contains(.signatureInput) else { return nil }
        return try sign(status, body, fields, .request, request, credentials, at)
    }

    /// The same for an answer that is bound by what it says, whatever the request was.
    package func sign(
        status: Int, body: [UInt8], alsoCovering fields: [Draft.Field] = [], as credentials: Credentials, at: Int64
    ) throws(Refusal) -> [Draft.Field]? {
        try sign(status, body, fields, .content, Request(), credentials, at)
    }

    private func sign(
        _ status: Int, _ body: [UInt8], _ own: [Draft.Field], _ binding: Binding, _ request: Request,
        _ credentials: Credentials, _ at: Int64
    ) throws(Refusal) -> [Draft.Field]? {
        let key = credentials.key
        var components = ["\"@status\"", "\"content-digest\""] + own.map { "\"\($0.name.lowercased())\"" }
        if binding == .request { components += MessageSignatures.requestComponents }
        let parameters =
            "created=\(at);keyid=\"\(credentials.keyID.quotable)\";alg=\"\(key.algorithm.rawValue)\";tag=\"countersign\""
        var fields = [
            Draft.Field("Content-Digest", ContentDigest.value(for: body.span)),
            Draft.Field("Signature-Input", "answer=(\(components.joined(separator: " ")));\(parameters)"),
            Draft.Field("Signature", "answer=::"),
        ]
        var workspace = Workspace()
        let response = Response(status: status, fields: own + fields, body: body)
        guard try claim(in: response, to: request, bound: binding, &workspace) != nil else { return nil }
        let signature = try key.sign(workspace.text)
        fields[2] = Draft.Field("Signature", "answer=:\(Base64.encode(signature.span, .standard)):")
        return fields
    }

    /// Reads an answer's signature and leaves its base in `workspace.text`. Nil where the answer bears none with our tag.
    package func claim(
        in response: Response, to request: Request, bound binding: Binding = .request, _ workspace: inout Workspace
    ) throws(Refusal) -> Claim? {
        let message = response.message
        guard message.fields.count <= FieldSet.limit else { throw Refusal(.malformed, "more than 128 fields") }
        guard try SignatureInput.isTagged(message, &workspace) else { return nil }
        let input = workspace.signature
        guard let named = input.keyID, let keyID = KeyID(quoted: message.head.span.extracting(named.range)) else {
            throw Refusal(.malformed, "Signature-Input: expected a keyid of 1 to 64 visible characters")
        }
        let signature = try MessageSignatures.signature(labelled: input.label, in: message, &workspace)
        let claim = Claim(scheme: name, keyID: keyID, algorithm: .ofKey, mac: signature.short)
        claim.longSignature = signature.long
        claim.namedAlgorithm = try input.namedAlgorithm(in: message)
        claim.created = input.created.map(Claim.Created.unix) ?? .unsigned
        claim.expires = input.expires
        let bound = try bindings(of: response, to: request, &workspace)
        guard bound.isSuperset(of: binding.least) else {
            throw Refusal(
                .badSignature, "the answer's signature does not cover \(binding.least.subtracting(bound).names)")
        }
        let digest = try ContentDigest.read(message)
        guard digest.sha256 != nil || digest.sha512 != nil else {
            throw Refusal(.badSignature, "the answer's content-digest has neither sha-256 nor sha-512")
        }
        claim.body = .digests(sha256: digest.sha256, sha512: digest.sha512)
        try SignatureBase(message: message, request: request, status: response.status).spell(&workspace)
        return claim
    }

    /// Looks up what the signature names, and says which parts of the least it covers.
    func bindings(
        of response: Response, to request: Request, _ workspace: inout Workspace
    ) throws(Refusal) -> Bindings {
        var bound: Bindings = []
        for index in workspace.signature.components.range {
            var component = workspace.components[index]
            try component.check(on: .response, in: response.message)
            guard workspace.isFirst(component, before: index, response.message) else {
                throw Refusal(.malformed, "Signature-Input: a component twice")
            }
            let isOfRequest = component.parameters.contains(.request)
            if component.kind == .field {
                _ = try component.findLines(in: isOfRequest ? request : response.message, namedIn: response.message)
                workspace.components[index] = component
            }
            switch (component.kind, component.known, component.parameters) {
            case (.status, _, []): bound.insert(.status)
            case (.field, .contentDigest, []): bound.insert(.digest)
            case (.method, _, [.request]): bound.insert(.method)
            case (.path, _, [.request]): bound.insert(.path)
            case (.query, _, [.request]): bound.insert(.query)
            case (.field, .signature, [.request]): bound.insert(.signature)
            case (.field, .signatureInput, [.request]): bound.insert(.input)
            default: break
            }
        }
        return bound
    }

    /// What makes an answer one to this request and no other.
    struct Bindings: OptionSet {
        let rawValue: UInt8

        static let status = Bindings(rawValue: 1)
        static let digest = Bindings(rawValue: 2)
        static let signature = Bindings(rawValue: 4)
        static let input = Bindings(rawValue: 8)
        static let method = Bindings(rawValue: 16)
        static let path = Bindings(rawValue: 32)
        static let query = Bindings(rawValue: 64)

        var names: String {
            let names: [(Bindings, String)] = [
                (.status, "\"@status\""), (.digest, "\"content-digest\""), (.signature, "\"signature\";req"),
                (.input, "\"signature-input\";req"), (.method, "\"@method\";req"), (.path, "\"@path\";req"),
                (.query, "\"@query\";req"),
            ]
            return names.filter { contains($0.0) }.map(\.1).joined(separator: ", ")
        }
    }
}

extension MessageSignatures.Binding {
    /// What must be covered at the least.
    fileprivate var least: MessageSignatures.Bindings {
        switch self {
        case .request: [.status, .digest, .method, .path, .query, .signature, .input]
        case .content: [.status, .digest]
        }
    }
}
