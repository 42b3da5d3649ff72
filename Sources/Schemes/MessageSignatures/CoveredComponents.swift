import CountersignWire

/// Which of the components that the gate asks for a signature covers.
struct CoveredComponents: BitwiseCopyable {
    /// A bit for each ``Component/Kind``.
    private(set) var derived: UInt16 = 0
    /// The index of `countersign-release` among the components; -1 without it.
    private var release = -1
    private(set) var contentDigest = false
    private var contentType = false
    private var idempotencyKey = false

    mutating func insert(_ component: Component, at index: Int) {
        guard component.kind == .field else {
            derived |= 1 << component.kind.rawValue
            return
        }
        switch component.known {
        case .contentType: contentType = true
        case .contentDigest: contentDigest = true
        case .idempotencyKey: idempotencyKey = true
        case .countersignRelease: release = index
        default: break
        }
    }

    /// Source: docs/protocol.md, "A signed request".
    func unmetRequirements(of request: Request, claim: Claim, list: ComponentList) -> UnmetRequirements {
        var lacking: UnmetRequirements = []
        func require(_ kind: Component.Kind, orNote lack: UnmetRequirements) {
            if derived & (1 << kind.rawValue) == 0 { lacking.insert(lack) }
        }
        require(.method, orNote: .method)
        require(.authority, orNote: .authority)
        require(.path, orNote: .path)
        require(.query, orNote: .query)
        if release < 0 {
            lacking.insert(.release)
        } else if claim.holder == .release {
            if !names(claim.keyID, in: request, list: list) { lacking.insert(.releaseValue) }
        } else if claim.release == nil {
            lacking.insert(.callingRelease)
        }
        if !contentType, request.names.contains(.contentType) { lacking.insert(.contentType) }
        if !idempotencyKey, request.names.contains(.idempotencyKey) { lacking.insert(.idempotencyKey) }
        if case .unsigned = claim.created { lacking.insert(.created) }
        if case .nonce = claim.replay {} else { lacking.insert(.nonce) }
        return lacking
    }

    /// The release that the covered `countersign-release` names; nil if the field is not covered, is not
    /// sent exactly once, or is not a key id.
    func releaseID(in request: Request, list: ComponentList) -> KeyID? {
        guard let value = releaseValue(in: request, list: list) else { return nil }
        return KeyID(request.head.span.extracting(value.range))
    }

    /// Whether the covered `countersign-release` is that key id.
    private func names(_ id: KeyID, in request: Request, list: ComponentList) -> Bool {
        guard let value = releaseValue(in: request, list: list) else { return false }
        return request.head.span.extracting(value.range).matches(id.bytes)
    }

    private func releaseValue(in request: Request, list: ComponentList) -> ByteRange? {
        guard release >= 0, list.components[release].lines == 1 else { return nil }
        return request.fields[Int(list.components[release].firstLine)].value
    }
}

extension MessageSignatures {
    /// Resolves the covered components, and records which fields the signature covers, what the body must
    /// be, and which minimum requirements the signature does not meet.
    func resolveComponents(of request: Request, claim: Claim, list: ComponentList) throws(Refusal) {
        var covered = FieldMask()
        let plan = list.plan
        let seen =
            plan.isPlain
            ? try list.resolvePlainly(in: request, plan: plan, covered: &covered)
            : try list.resolve(in: request, covered: &covered)
        claim.coveredFields = .only(covered)
        if claim.holder != .release { claim.release = seen.releaseID(in: request, list: list) }
        claim.unmetRequirements = seen.unmetRequirements(of: request, claim: claim, list: list)
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

extension ComponentList {
    /// Finds the lines of each field of a plain list.
    fileprivate func resolvePlainly(
        in request: Request, plan: Plan, covered: inout FieldMask
    ) throws(Refusal) -> CoveredComponents {
        let text = text
        for index in components.indices where components[index].kind == .field {
            covered.formUnion(try components[index].findLines(in: request, namedIn: text.span))
        }
        return plan.covered
    }

    /// The same for a list with parameters, with a component twice, or with one that no request has.
    fileprivate func resolve(
        in request: Request, covered: inout FieldMask
    ) throws(Refusal) -> CoveredComponents {
        let text = text
        var plain = FieldMask()
        var seen = CoveredComponents()
        var parsed = 0
        var queryBytes = 0
        for index in components.indices {
            var component = components[index]
            // Source: RFC 9421 §2, each component once.
            let isNew: Bool
            if component.parameters.isEmpty, component.kind == .field {
                let lines = try component.findLines(in: request, namedIn: text.span)
                components[index] = component
                seen.insert(component, at: index)
                isNew = !plain.intersects(lines)
                plain.formUnion(lines)
                covered.formUnion(lines)
            } else if component.parameters.isEmpty, component.isDerivedPlainly {
                isNew = seen.derived & 1 << component.kind.rawValue == 0
                seen.insert(component, at: index)
            } else {
                try component.check(on: .request, namedIn: text.span)
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
                    let lines = try component.findLines(in: request, namedIn: text.span)
                    components[index] = component
                    // One member of a dictionary says nothing about the rest of the field.
                    if !component.parameters.contains(.key) {
                        seen.insert(component, at: index)
                        covered.formUnion(lines)
                    }
                }
                isNew = isFirst(component, before: index)
            }
            guard isNew else {
                let identifier = text.span.extracting(component.identifier.range).text
                throw Refusal(.malformed, detail: "Signature-Input: component \(identifier) twice")
            }
        }
        return seen
    }
}

extension Component {
    /// Finds the lines of a field in `source` and returns them. `text` is that of the component's list.
    mutating func findLines(in source: Request, namedIn text: borrowing Span<UInt8>) throws(Refusal)
        -> FieldMask
    {
        let name = text.extracting(name.range)
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
    func check(on side: Side, namedIn text: borrowing Span<UInt8>) throws(Refusal) {
        guard let objection = objection(on: side) else { return }
        let identifier = text.extracting(identifier.range).text
        throw Refusal(.badSignature, detail: "Signature-Input: component \(identifier) \(objection)")
    }
}

/// The gate's minimum requirements that a signature does not meet, even if its MAC is valid. Offline
/// verification reports them.
package struct UnmetRequirements: OptionSet, Sendable {
    package let rawValue: UInt16

    package init(rawValue: UInt16) { self.rawValue = rawValue }

    package var isEmpty: Bool { rawValue == 0 }

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
