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

    fileprivate init(_ claim: Claim, _ release: ReleaseKey, isSafe: Bool) {
        self.release = release
        created = claim.created
        expires = claim.expires
        replayKey = claim.replayKey(under: release.allowance.replay, isSafe: isSafe)
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
        workspace.publicURL = candidate.release?.allowance.publicURL
        try scheme.spell(claim, request, &workspace)
        var verdict = Verify.compare(claim, candidate.key, workspace)
        if verdict != .equal, let next = candidate.nextKey { verdict = Verify.compare(claim, next, workspace) }
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
        return Proof(claim, release, isSafe: request.isSafe)
    }

    /// Whether the string to sign, which lies in `workspace`, has the claim's signature under `key`. The gate and the
    /// explanations ask here and nowhere else.
    static func compare(
        _ claim: Claim, _ key: SigningKey, _ workspace: borrowing Workspace
    ) -> ConstantTime.Verdict {
        ConstantTime.equals(key.mac(claim.algorithm, of: workspace.text).span, claim.mac.span)
    }

    /// Whether the signature that was sent is that of another make, for explanations.
    static func compare(_ other: Span<UInt8>, _ sent: MAC) -> ConstantTime.Verdict {
        ConstantTime.equals(other, sent.span)
    }
}

extension Claim {
    /// What must not have been seen before; nil where the request may repeat.
    fileprivate func replayKey(under rule: Policy.ReplayRule, isSafe: Bool) -> ReplayKey? {
        switch (replay, rule) {
        case (.nonce(let nonce), _): nonce
        case (.signature, .strict): mac
        case (.signature, .unsafeOnly): isSafe ? nil : mac
        case (.signature, .off), (.impossible, _): nil
        }
    }
}

extension Request {
    /// Whether it asks for nothing to be changed. Source: RFC 9110 §9.2.1, of which backends keep GET and HEAD.
    fileprivate var isSafe: Bool { matches(method, "GET") || matches(method, "HEAD") }
}
