import CountersignWire

/// Which of the components that the gate asks for a signature covers.
struct Seen {
    /// A bit for each ``Component/Kind``.
    var derived: UInt16 = 0
    private var release: Component?
    private(set) var contentDigest = false
    private var contentType = false
    private var idempotencyKey = false

    mutating func note(_ component: Component) {
        switch component.known {
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

    /// What the covered `countersign-release` names; nil where it is not covered, not sent once, or no key id.
    func releaseID(in request: Request) -> KeyID? {
        guard let release, release.lines == 1 else { return nil }
        return KeyID(request.head.span.extracting(request.fields[Int(release.firstLine)].value.range))
    }
}
