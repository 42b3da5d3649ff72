import CountersignWire

extension MessageSignatures {
    /// Looks up what the signature names, and notes which fields it vouches for, what the body must be, and what it
    /// lacks of the least that the gate accepts.
    func cover(_ request: Request, _ claim: inout Claim, _ workspace: inout Workspace) throws(Refusal) {
        let range = workspace.signature.components.range
        var mask: UInt128 = 0
        var seen = Seen()
        for index in range {
            try refuseRepeated(index, in: range, request, workspace)
            let kind = workspace.components[index].kind
            switch kind {
            case .field:
                var component = workspace.components[index]
                mask |= try lookUp(&component, request, &seen)
                workspace.components[index] = component
            case .unsupported:
                let text = request.head.span.extracting(workspace.components[index].identifier.range).text
                throw Refusal(.badSignature, "Signature-Input: component \(text) is not supported here")
            default: seen.derived |= 1 << kind.rawValue
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

    /// Source: RFC 9421 §2, each identifier once.
    private func refuseRepeated(
        _ index: Int, in range: Range<Int>, _ request: Request, _ workspace: borrowing Workspace
    ) throws(Refusal) {
        let identifier = workspace.components[index].identifier
        let text = request.head.span.extracting(identifier.range)
        for other in range.lowerBound..<index {
            let earlier = workspace.components[other].identifier
            guard earlier.count == identifier.count else { continue }
            if request.head.span.extracting(earlier.range).matches(text) {
                throw Refusal(.malformed, "Signature-Input: component \(text.text) twice")
            }
        }
    }

    /// Finds the lines of a field, and says which they are as a bit mask.
    private func lookUp(
        _ component: inout Component, _ request: Request, _ seen: inout Seen
    ) throws(Refusal) -> UInt128 {
        let name = request.head.span.extracting(component.name.range)
        var mask: UInt128 = 0
        component.lines = 0
        for number in 0..<request.fields.count {
            let field = request.fields[number].name
            guard field.count == name.count, request.head.span.extracting(field.range).matches(name) else { continue }
            if component.lines == 0 { component.firstLine = UInt16(truncatingIfNeeded: number) }
            component.lines += 1
            mask |= 1 << UInt128(number)
        }
        guard component.lines > 0 else {
            throw Refusal(.badSignature, "the signature covers \"\(name.text)\", which the request does not have")
        }
        seen.note(name)
        return mask
    }
}

/// Which of the components that the gate asks for a signature covers.
private struct Seen {
    /// A bit for each ``Component/Kind``.
    var derived: UInt16 = 0
    var release = false
    var contentDigest = false
    var contentType = false
    var idempotencyKey = false

    mutating func note(_ field: borrowing Span<UInt8>) {
        if field.matches("countersign-release") { release = true }
        if field.matches("content-digest") { contentDigest = true }
        if field.matches("content-type") { contentType = true }
        if field.matches("idempotency-key") { idempotencyKey = true }
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
        if !release {
            lacking.insert(.release)
        } else if !isRelease(claim.keyID, in: request) {
            lacking.insert(.releaseValue)
        }
        for field in request.fields {
            if !contentType, request.matches(field.name, "content-type") { lacking.insert(.contentType) }
            if !idempotencyKey, request.matches(field.name, "idempotency-key") { lacking.insert(.idempotencyKey) }
        }
        if case .unsigned = claim.created { lacking.insert(.created) }
        if claim.replayKey == nil { lacking.insert(.nonce) }
        return lacking
    }

    private func isRelease(_ keyID: KeyID, in request: Request) -> Bool {
        guard let value = request.value(of: "countersign-release") else { return false }
        return request.head.span.extracting(value.range).matches(keyID.bytes)
    }
}
