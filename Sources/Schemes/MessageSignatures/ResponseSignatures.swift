import CountersignSeal
import CountersignWire

/// Signatures of responses, bound to the request. Source: RFC 9421 §2.4; docs/protocol.md,
/// "Answers".
extension MessageSignatures {
    /// The `keyid` of the deployment's answer key.
    package static let authorityKeyID = "authority"

    /// What a response's signature binds it to.
    package enum Binding: Sendable {
        /// The request's signature, method and target. Without method and target, an attacker could obtain a
        /// response from a route that verifies no signatures and present it as the response of one that does.
        case request
        /// Only its own content, which then contains a value from the request that the caller compares.
        case content
    }

    /// Whether a response may have a signature of ours. Refuses one with too many fields to say so.
    static func signs(_ response: Response) throws(Refusal) -> Bool {
        guard response.message.fields.count <= FieldSet.limit else {
            throw Refusal(.malformed, detail: "more than 128 fields")
        }
        return response.message.names.contains(.signatureInput)
    }

    /// Reads a response's signature and writes its base to `workspace.text`. Nil if the response has no
    /// signature with our tag.
    package func claim(
        in response: Response, to request: Request, bound binding: Binding = .request,
        workspace: inout Workspace
    ) throws(Refusal) -> Claim? {
        let message = response.message
        guard try MessageSignatures.signs(response),
            try SignatureInput.readTagged(from: message, workspace: &workspace)
        else { return nil }
        let input = workspace.part(SignatureInputBuffers.self).buffers.input
        guard let named = input.keyID, let keyID = KeyID(quoted: message.head.span.extracting(named.range))
        else {
            throw Refusal(
                .malformed, detail: "Signature-Input: expected a keyid of 1 to 64 visible characters")
        }
        let signature = try MessageSignatures.signature(
            labelled: input.label, in: message, workspace: &workspace)
        let claim = Claim(scheme: name, keyID: keyID, algorithm: .ofKey, mac: signature.short)
        claim.longSignature = signature.long
        claim.namedAlgorithm = try input.namedAlgorithm(in: message)
        claim.created = input.created.map(Claim.CreationTime.unix) ?? .unsigned
        claim.expires = input.expires
        let bound = try boundComponents(of: response, to: request, workspace: &workspace)
        guard bound.isSuperset(of: binding.least) else {
            throw Refusal(
                .badSignature,
                detail: "the answer's signature does not cover \(binding.least.subtracting(bound).names)")
        }
        let digest = try ContentDigest.read(message)
        guard digest.sha256 != nil || digest.sha512 != nil else {
            throw Refusal(
                .badSignature, detail: "the answer's content-digest has neither sha-256 nor sha-512")
        }
        claim.body = .digests(sha256: digest.sha256, sha512: digest.sha512)
        try SignatureBase.write(
            of: message, request: request, status: response.status, into: &workspace)
        return claim
    }

    /// Resolves the covered components and returns which of the required parts they include.
    func boundComponents(
        of response: Response, to request: Request, workspace: inout Workspace
    ) throws(Refusal) -> BoundComponents {
        var bound: BoundComponents = []
        let list = workspace.part(SignatureInputBuffers.self).buffers.list
        let words = list.text
        for index in list.components.indices {
            var component = list.components[index]
            try component.check(on: .response, namedIn: words.span)
            guard list.isFirst(component, before: index) else {
                throw Refusal(.malformed, detail: "Signature-Input: a component twice")
            }
            let isOfRequest = component.parameters.contains(.request)
            if component.kind == .field {
                _ = try component.findLines(
                    in: isOfRequest ? request : response.message, namedIn: words.span)
                list.components[index] = component
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

    /// The components that bind a response to this request.
    struct BoundComponents: OptionSet {
        let rawValue: UInt8

        static let status = BoundComponents(rawValue: 1)
        static let digest = BoundComponents(rawValue: 2)
        static let signature = BoundComponents(rawValue: 4)
        static let input = BoundComponents(rawValue: 8)
        static let method = BoundComponents(rawValue: 16)
        static let path = BoundComponents(rawValue: 32)
        static let query = BoundComponents(rawValue: 64)

        var names: String {
            let names: [(BoundComponents, String)] = [
                (.status, "\"@status\""), (.digest, "\"content-digest\""), (.signature, "\"signature\";req"),
                (.input, "\"signature-input\";req"), (.method, "\"@method\";req"), (.path, "\"@path\";req"),
                (.query, "\"@query\";req"),
            ]
            return names.filter { contains($0.0) }.map(\.1).joined(separator: ", ")
        }
    }
}

extension MessageSignatures.Binding {
    /// The components that must be covered.
    fileprivate var least: MessageSignatures.BoundComponents {
        switch self {
        case .request: [.status, .digest, .method, .path, .query, .signature, .input]
        case .content: [.status, .digest]
        }
    }
}
