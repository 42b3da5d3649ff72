import CountersignWire

extension MessageSignatures {
    /// Looks up what the signature names, and notes which fields it vouches for, what the body must be, and what it
    /// lacks of the least that the gate accepts.
    func cover(_ request: Request, _ claim: inout Claim, _ workspace: inout Workspace) throws(Refusal) {
        let range = workspace.signature.components.range
        var mask: UInt128 = 0
        var seen = Seen()
        for index in range {
            var component = workspace.components[index]
            // Source: RFC 9421 §2, each component once.
            let isNew: Bool
            switch component.kind {
            case .field:
                let lines = try lookUp(&component, request, &seen)
                workspace.components[index] = component
                isNew = mask & lines == 0
                mask |= lines
            case .unsupported:
                let text = request.head.span.extracting(component.identifier.range).text
                throw Refusal(.badSignature, "Signature-Input: component \(text) is not supported here")
            default:
                let bit: UInt16 = 1 << component.kind.rawValue
                isNew = seen.derived & bit == 0
                seen.derived |= bit
            }
            guard isNew else {
                let name = request.head.span.extracting(component.name.range).text
                throw Refusal(.malformed, "Signature-Input: component \(name) twice")
            }
        }
        claim.coveredFields = .only(mask)
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

    /// Finds the lines of a field, and says which they are as a bit mask.
    private func lookUp(
        _ component: inout Component, _ request: Request, _ seen: inout Seen
    ) throws(Refusal) -> UInt128 {
        let name = request.head.span.extracting(component.name.range)
        let known = FieldName(name)
        var mask: UInt128 = 0
        component.lines = 0
        for number in 0..<request.fields.count {
            let field = request.fields[number]
            guard field.known == known, field.name.count == name.count else { continue }
            if known == .other {
                guard request.head.span.extracting(field.name.range).matches(name) else { continue }
            }
            if component.lines == 0 { component.firstLine = UInt16(truncatingIfNeeded: number) }
            component.lines += 1
            mask |= 1 << UInt128(number)
        }
        guard component.lines > 0 else {
            throw Refusal(.badSignature, "the signature covers \"\(name.text)\", which the request does not have")
        }
        seen.note(known, component)
        return mask
    }
}

/// Which of the components that the gate asks for a signature covers.
private struct Seen {
    /// A bit for each ``Component/Kind``.
    var derived: UInt16 = 0
    var release: Component?
    var contentDigest = false
    var contentType = false
    var idempotencyKey = false

    mutating func note(_ name: FieldName, _ component: Component) {
        switch name {
        case .contentType: contentType = true
        case .contentDigest: contentDigest = true
        case .idempotencyKey: idempotencyKey = true
        case .countersignRelease: release = component
        default: break
        }
    }

    /// Source: docs/protocol.md, "A signed request".
    func shortfalls(of request: Request, _ claim: Claim) -> Shortfalls {
        var lacking: Shortfalls = []
        func require(_ kind: Component.Kind, _ lack: Shortfalls) {
            if derived & (1 << kind.rawValue) == 0 { lacking.insert(lack) }
        }
        require(.method, .method)
        require(.authority, .authority)
        require(.path, .path)
        require(.query, .query)
        if release == nil {
            lacking.insert(.release)
        } else if !isRelease(claim.keyID, request) {
            lacking.insert(.releaseValue)
        }
        if !contentType, request.names.contains(.contentType) { lacking.insert(.contentType) }
        if !idempotencyKey, request.names.contains(.idempotencyKey) { lacking.insert(.idempotencyKey) }
        if case .unsigned = claim.created { lacking.insert(.created) }
        if case .nonce = claim.replay {} else { lacking.insert(.nonce) }
        return lacking
    }

    private func isRelease(_ keyID: KeyID, _ request: Request) -> Bool {
        guard let release, release.lines == 1 else { return false }
        let value = request.fields[Int(release.firstLine)].value
        return request.head.span.extracting(value.range).matches(keyID.bytes)
    }
}
