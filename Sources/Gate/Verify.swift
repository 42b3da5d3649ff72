import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Says that a signature held, and for what. Only ``Verify`` can make one, and it can be used once.
package struct Proof: ~Copyable, Sendable {
    let release: ReleaseKey
    let created: Claim.Created
    /// Whole Unix seconds.
    let expires: Int64?
    let replayKey: Claim.ReplayKey?
    let coveredFields: FieldSet
    let body: BodyExpectation

    fileprivate init(_ claim: Claim, _ release: ReleaseKey) {
        self.release = release
        created = claim.created
        expires = claim.expires
        replayKey = claim.replayKey
        coveredFields = claim.coveredFields
        body = claim.body
    }
}

/// Does the signature hold?
package struct Verify: Sendable {
    private let schemes: Registry

    package init(_ schemes: Registry) { self.schemes = schemes }

    package func callAsFunction(
        _ request: Request, _ claim: Claim, _ candidate: Candidate, _ workspace: inout Workspace
    ) throws(Refusal) -> Proof {
        guard let scheme = schemes.scheme(named: claim.scheme) else { throw Refusal(.unsigned) }
        try scheme.spell(claim, request, &workspace)
        let mac = candidate.key.mac(claim.algorithm, of: workspace.text)
        let verdict = ConstantTime.equals(mac.span, claim.mac.span)
        guard let release = candidate.release else {
            throw Refusal(.unknownKey, "keyid \(claim.keyID): no such key for \(claim.scheme.rawValue)")
        }
        guard verdict == .equal else {
            throw Refusal(.badSignature, "the MAC of the \(claim.scheme.rawValue) string to sign differs")
        }
        guard release.allowance.isAllowed else {
            throw Refusal(.schemeNotAllowed, "app \(release.app) does not allow \(claim.scheme.rawValue)")
        }
        guard claim.shortfalls.isEmpty else {
            throw Refusal(.badSignature, claim.shortfalls.descriptions.joined(separator: "; "))
        }
        if let contradiction = claim.contradiction(to: release.platform, release.version, workspace) {
            throw Refusal(.badSignature, contradiction)
        }
        if request.isBodyWhole { try claim.body.check(request.body.span) }
        return Proof(claim, release)
    }
}
