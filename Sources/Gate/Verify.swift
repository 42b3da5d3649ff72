import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Says that a signature held, and for what. Only ``Verify`` can make one, and it can be used once.
package struct Proof: ~Copyable, Sendable {
    let release: ReleaseKey
    let created: Claim.Created
    /// Whole Unix seconds.
    let expires: Int64?
    /// Seconds from `created`, for a signature that says how long it means to live.
    let lifetime: Int64?
    let replayKey: Claim.ReplayKey?
    let coveredFields: FieldSet
    let body: BodyExpectation

    fileprivate init(_ claim: Claim, _ release: ReleaseKey, isSafe: Bool) {
        self.release = release
        created = claim.created
        expires = claim.expires
        lifetime = claim.lifetime
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
        let verdict = try Verify.compareAll(claim, request, scheme, candidate, &workspace)
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
        if case .leftOpen = claim.body, release.allowance.unsignedPayload == .refused {
            throw Refusal(.bodyMismatch, "the body is not signed, and app \(release.app) does not allow that")
        }
        if request.isBodyWhole { try claim.body.check(request.body.span) }
        return Proof(claim, release, isSafe: request.isSafe)
    }

    /// Whether the claim's signature is that of any spelling of the request. The first lies in `workspace`, and where
    /// one fits, that is left there.
    static func compareAll(
        _ claim: Claim, _ request: Request, _ scheme: any Scheme, _ candidate: Candidate,
        _ workspace: inout Workspace
    ) throws(Refusal) -> ConstantTime.Verdict {
        var attempt = 0
        repeat {
            if compare(claim, candidate.key, workspace) == .equal { return .equal }
            if let next = candidate.nextKey, compare(claim, next, workspace) == .equal { return .equal }
            attempt += 1
        } while try scheme.respell(attempt - 1, claim, request, &workspace) == .written
        return .different
    }

    /// Whether the string to sign, which lies in `workspace`, has the claim's signature under `key`. The gate and the
    /// explanations ask here and nowhere else.
    static func compare(
        _ claim: Claim, _ key: SigningKey, _ workspace: borrowing Workspace
    ) -> ConstantTime.Verdict {
        let verdict = ConstantTime.equals(key.mac(claim.algorithm, of: workspace.text).span, claim.mac.span)
        key.settle(verdict, claim.algorithm, of: workspace.text)
        return verdict
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
