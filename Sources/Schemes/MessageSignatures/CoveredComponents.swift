import CountersignWire

/// Which of the components that the gate asks for a signature covers.
struct CoveredComponents {
    /// A bit for each ``Component/Kind``.
    var derived: UInt16 = 0
    private var release: Component?
    private(set) var contentDigest = false
    private var contentType = false
    private var idempotencyKey = false

    mutating func insert(_ component: Component) {
        switch component.known {
        case .contentType: contentType = true
        case .contentDigest: contentDigest = true
        case .idempotencyKey: idempotencyKey = true
        case .countersignRelease: release = component
        default: break
        }
    }

    /// Source: docs/protocol.md, "A signed request".
    func unmetRequirements(of request: Request, claim: Claim) -> UnmetRequirements {
        var lacking: UnmetRequirements = []
        func require(_ kind: Component.Kind, orNote lack: UnmetRequirements) {
            if derived & (1 << kind.rawValue) == 0 { lacking.insert(lack) }
        }
        require(.method, orNote: .method)
        require(.authority, orNote: .authority)
        require(.path, orNote: .path)
        require(.query, orNote: .query)
        if release == nil {
            lacking.insert(.release)
        } else if claim.release == nil {
            lacking.insert(.callingRelease)
        } else if claim.holder == .release, releaseID(in: request) != claim.keyID {
            lacking.insert(.releaseValue)
        }
        if !contentType, request.names.contains(.contentType) { lacking.insert(.contentType) }
        if !idempotencyKey, request.names.contains(.idempotencyKey) { lacking.insert(.idempotencyKey) }
        if case .unsigned = claim.created { lacking.insert(.created) }
        if case .nonce = claim.replay {} else { lacking.insert(.nonce) }
        return lacking
    }

    /// The release that the covered `countersign-release` names; nil if the field is not covered, is not
    /// sent exactly once, or is not a key id.
    func releaseID(in request: Request) -> KeyID? {
        guard let release, release.lines == 1 else { return nil }
        return KeyID(request.head.span.extracting(request.fields[Int(release.firstLine)].value.range))
    }
}

extension MessageSignatures {
    /// Resolves the covered components, and records which fields the signature covers, what the body must
    /// be, and which minimum requirements the signature does not meet.
    func resolveComponents(of request: Request, claim: Claim, workspace: inout Workspace) throws(Refusal) {
        var covered = FieldMask()
        var plain = FieldMask()
        var seen = CoveredComponents()
        var parsed = 0
        var queryBytes = 0
        let part = workspace.part(SignatureInputBuffers.self)
        for index in part.buffers.input.components.range {
            var component = part.buffers.components[index]
            // Source: RFC 9421 §2, each component once.
            let isNew: Bool
            if component.parameters.isEmpty, component.kind == .field {
                let lines = try component.findLines(in: request, namedIn: request)
                seen.insert(component)
                part.buffers.components[index] = component
                isNew = !plain.intersects(lines)
                plain.formUnion(lines)
                covered.formUnion(lines)
            } else if component.parameters.isEmpty,
                component.kind.rawValue < Component.Kind.queryParam.rawValue
            {
                let bit: UInt16 = 1 << component.kind.rawValue
                isNew = seen.derived & bit == 0
                seen.derived |= bit
            } else {
                try component.check(on: .request, in: request)
                if component.isParsed { parsed += 1 }
                if component.kind == .queryParam { queryBytes += request.query?.count ?? 0 }
                guard queryBytes <= SignatureInput.mostQueryBytes else {
                    throw Refusal(
                        .malformed,
                        detail:
                            "Signature-Input: more query parameters than are looked up in a query of "
                            + "this length"
                    )
                }
                guard parsed <= SignatureInput.mostParsed else {
                    throw Refusal(
                        .malformed,
                        detail:
                            "Signature-Input: more than \(SignatureInput.mostParsed) components that "
                            + "have to be parsed"
                    )
                }
                if component.kind == .field {
                    let lines = try component.findLines(in: request, namedIn: request)
                    // One member of a dictionary says nothing about the rest of the field.
                    if !component.parameters.contains(.key) {
                        seen.insert(component)
                        covered.formUnion(lines)
                    }
                    part.buffers.components[index] = component
                }
                isNew = part.buffers.isFirst(component, before: index, in: request)
            }
            guard isNew else {
                let text = request.head.span.extracting(component.identifier.range).text
                throw Refusal(.malformed, detail: "Signature-Input: component \(text) twice")
            }
        }
        claim.coveredFields = .only(covered)
        if claim.holder != .release { claim.release = seen.releaseID(in: request) }
        claim.unmetRequirements = seen.unmetRequirements(of: request, claim: claim)
        if let digest = seen.contentDigest ? try ContentDigest.read(request) : nil {
            if digest.sha256 != nil || digest.sha512 != nil {
                claim.body = .digests(sha256: digest.sha256, sha512: digest.sha512)
                return
            }
            claim.unmetRequirements.insert(.digestAlgorithm)
        } else if !request.isBodyWhole || !request.body.isEmpty {
            claim.unmetRequirements.insert(.contentDigest)
        }
        claim.body = .unsigned
    }
}

extension Component {
    /// Finds the lines of a field in `source` and returns them.
    mutating func findLines(in source: Request, namedIn message: Request) throws(Refusal) -> FieldMask {
        let name = message.head.span.extracting(name.range)
        var mask = FieldMask()
        lines = 0
        for number in 0..<source.fields.count {
            let field = source.fields[number]
            guard field.known == known, field.name.count == name.count else { continue }
            if known == .other {
                guard source.head.span.extracting(field.name.range).matches(name) else { continue }
            }
            if lines == 0 { firstLine = UInt16(truncatingIfNeeded: number) }
            lines += 1
            mask.insert(number)
        }
        guard lines > 0 else {
            throw Refusal(
                .badSignature,
                detail: "the signature covers \"\(name.text)\", which the message does not have")
        }
        return mask
    }

    /// Refuses what cannot be part of a signature on that side.
    func check(on side: Side, in message: Request) throws(Refusal) {
        guard let objection = objection(on: side) else { return }
        let text = message.head.span.extracting(identifier.range).text
        throw Refusal(.badSignature, detail: "Signature-Input: component \(text) \(objection)")
    }
}

extension SignatureInputBuffers {
    /// Whether no component of the chosen signature before that index is the same.
    func isFirst(_ component: Component, before index: Int, in message: Request) -> Bool {
        for earlier in input.components.range.lowerBound..<index
        where component.isSame(as: components[earlier], in: message.head.span) {
            return false
        }
        return true
    }
}

/// The gate's minimum requirements that a signature does not meet, even if its MAC is valid. Offline
/// verification reports them.
package struct UnmetRequirements: OptionSet, Sendable {
    package let rawValue: UInt16

    package init(rawValue: UInt16) { self.rawValue = rawValue }

    package static let method = UnmetRequirements(rawValue: 1 << 0)
    package static let authority = UnmetRequirements(rawValue: 1 << 1)
    package static let path = UnmetRequirements(rawValue: 1 << 2)
    package static let query = UnmetRequirements(rawValue: 1 << 3)
    package static let release = UnmetRequirements(rawValue: 1 << 4)
    package static let releaseValue = UnmetRequirements(rawValue: 1 << 5)
    package static let contentDigest = UnmetRequirements(rawValue: 1 << 6)
    package static let digestAlgorithm = UnmetRequirements(rawValue: 1 << 7)
    package static let contentType = UnmetRequirements(rawValue: 1 << 8)
    package static let idempotencyKey = UnmetRequirements(rawValue: 1 << 9)
    package static let created = UnmetRequirements(rawValue: 1 << 10)
    package static let nonce = UnmetRequirements(rawValue: 1 << 11)
    package static let callingRelease = UnmetRequirements(rawValue: 1 << 12)

    private static let sentences: [(UnmetRequirements, String)] = [
        (.method, "the signature does not cover \"@method\""),
        (.authority, "the signature does not cover \"@authority\""),
        (.path, "the signature does not cover \"@path\""),
        (.query, "the signature does not cover \"@query\""),
        (.release, "the signature does not cover \"countersign-release\""),
        (.releaseValue, "countersign-release must be sent once and be the signature's keyid"),
        (
            .callingRelease,
            "countersign-release must be sent once and be the key id of the release that calls"
        ),
        (.contentDigest, "there is a body, and the signature does not cover \"content-digest\""),
        (.digestAlgorithm, "content-digest has neither sha-256 nor sha-512"),
        (.contentType, "the signature does not cover \"content-type\", which is sent"),
        (.idempotencyKey, "the signature does not cover \"idempotency-key\", which is sent"),
        (.created, "the signature has no \"created\" parameter"),
        (.nonce, "the signature has no \"nonce\" parameter"),
    ]

    /// One sentence each.
    package var descriptions: [String] { UnmetRequirements.sentences.filter { contains($0.0) }.map(\.1) }
}
