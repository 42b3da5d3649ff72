import CountersignWire

extension MessageSignatures {
    /// Looks up what the signature names, and notes which fields it vouches for, what the body must be, and what it
    /// lacks of the least that the gate accepts.
    func cover(_ request: Request, _ claim: Claim, _ workspace: inout Workspace) throws(Refusal) {
        var covered = FieldMask()
        var plain = FieldMask()
        var seen = Seen()
        var parsed = 0
        var queryBytes = 0
        for index in workspace.signature.components.range {
            var component = workspace.components[index]
            // Source: RFC 9421 §2, each component once.
            let isNew: Bool
            if component.parameters.isEmpty, component.kind == .field {
                let lines = try component.findLines(in: request, namedIn: request)
                seen.note(component)
                workspace.components[index] = component
                isNew = !plain.intersects(lines)
                plain.formUnion(lines)
                covered.formUnion(lines)
            } else if component.parameters.isEmpty, component.kind.rawValue < Component.Kind.queryParam.rawValue {
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
                        "Signature-Input: more query parameters than are looked up in a query of this length")
                }
                guard parsed <= SignatureInput.mostParsed else {
                    throw Refusal(
                        .malformed,
                        "Signature-Input: more than \(SignatureInput.mostParsed) components that have to be parsed")
                }
                if component.kind == .field {
                    let lines = try component.findLines(in: request, namedIn: request)
                    // One member of a dictionary says nothing about the rest of the field.
                    if !component.parameters.contains(.key) {
                        seen.note(component)
                        covered.formUnion(lines)
                    }
                    workspace.components[index] = component
                }
                isNew = workspace.isFirst(component, before: index, request)
            }
            guard isNew else {
                let text = request.head.span.extracting(component.identifier.range).text
                throw Refusal(.malformed, "Signature-Input: component \(text) twice")
            }
        }
        claim.coveredFields = .only(covered)
        if claim.holder != .release { claim.release = seen.releaseID(in: request) }
        claim.shortfalls = seen.shortfalls(of: request, claim)
        if let digest = seen.contentDigest ? try ContentDigest.read(request) : nil {
            if digest.sha256 != nil || digest.sha512 != nil {
                claim.body = .digests(sha256: digest.sha256, sha512: digest.sha512)
                return
            }
            claim.shortfalls.insert(.digestAlgorithm)
        } else if !request.isBodyWhole || !request.body.isEmpty {
            claim.shortfalls.insert(.contentDigest)
        }
        claim.body = .unsigned
    }
}

extension Component {
    /// Finds the lines of a field in `source`, and says which they are.
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
            throw Refusal(.badSignature, "the signature covers \"\(name.text)\", which the message does not have")
        }
        return mask
    }

    /// Refuses what cannot be part of a signature on that side.
    func check(on side: Side, in message: Request) throws(Refusal) {
        guard let objection = objection(on: side) else { return }
        let text = message.head.span.extracting(identifier.range).text
        throw Refusal(.badSignature, "Signature-Input: component \(text) \(objection)")
    }
}

extension Workspace {
    /// Whether no component of the chosen signature before that index is the same.
    func isFirst(_ component: Component, before index: Int, _ message: Request) -> Bool {
        for earlier in signature.components.range.lowerBound..<index
        where component.isSame(as: components[earlier], message.head.span) {
            return false
        }
        return true
    }
}
