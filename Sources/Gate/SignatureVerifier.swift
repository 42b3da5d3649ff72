import CountersignSchemes
import CountersignSeal
import CountersignWire

/// States that a signature was verified, and for what. Only ``SignatureVerifier`` can make one, and it can be
/// used once.
package struct SignatureProof: ~Copyable, Sendable {
    /// The claim whose signature was verified; it does not change any more.
    let claim: Claim
    let release: AppRelease
    let session: Session?
    let edition: AppRelease.Edition
    /// Whether the request's method is safe.
    let isSafe: Bool
    /// What the replay guard has computed for the entry of this claim.
    let fingerprint: ReplayFingerprint?

    fileprivate init(
        _ claim: Claim, release: AppRelease, session: Session?, edition: AppRelease.Edition, isSafe: Bool,
        fingerprint: ReplayFingerprint?
    ) {
        self.claim = claim
        self.release = release
        self.session = session
        self.edition = edition
        self.isSafe = isSafe
        self.fingerprint = fingerprint
    }
}

/// Verifies the signature, and checks that the app's policy accepts it.
package final class SignatureVerifier: Sendable {
    private let schemes: SchemeRegistry
    private let failures: PublicKeyFailureLimiter

    package init(schemes: SchemeRegistry, failures: PublicKeyFailureLimiter) {
        self.schemes = schemes
        self.failures = failures
    }

    /// Records in `judgement` the step and the key that verified the signature. `network` returns the
    /// client's network address and is called for key pairs only; `fingerprint` is that of the claim's
    /// replay entry, for its proof; `now` is in whole Unix seconds.
    package func verify(
        _ request: Request, claim: Claim, key: VerificationKey, recordingIn judgement: Judgement,
        from network: () -> [UInt8], replayFingerprint fingerprint: ReplayFingerprint?, at now: Int64,
        workspace: inout Workspace
    ) throws(Refusal) -> SignatureProof {
        judgement.step = .signature
        guard let entry = schemes.entry(named: claim.scheme) else { throw Refusal(.unsigned) }
        // Each of these is copied once.
        let (current, next, session) = (key.key, key.nextKey, key.session)
        workspace.settings = key.release?.schemePolicy.settings ?? SchemeSettings()
        try entry.scheme.writeStringToSign(for: claim, of: request, into: &workspace)
        // Public keys alone are slow to verify with.
        let isOfKeyPair = current.isOfKeyPair || next?.isOfKeyPair ?? false
        let place = isOfKeyPair ? key.place(of: claim, from: network()) : nil
        if let place { try failures.check(place, at: now) }
        let signer = try SignatureVerifier.signer(
            of: claim, request: request, scheme: entry.scheme, current: current, next: next,
            workspace: &workspace)
        if signer == nil, let place { failures.recordFailure(of: place, at: now) }
        try key.checkKnown(claim)
        guard let signer else { throw SignatureVerifier.mismatch(of: claim, key: key) }
        judgement.signer = signer
        judgement.step = .policy
        let release = try key.callingRelease(claim)
        try release.checkAllowed()
        if case .rsaV15 = signer.algorithm, case .refused = release.policy.rsaV15 {
            throw Refusal(
                .schemeNotAllowed, detail: "app \(release.app) does not allow keys for rsa-v1_5-sha256")
        }
        guard claim.unmetRequirements.isEmpty else {
            throw Refusal(.badSignature, detail: claim.unmetRequirements.descriptions.joined(separator: "; "))
        }
        if let ambiguity = entry.scheme.ambiguity(of: request, in: workspace) {
            throw Refusal(.malformed, detail: ambiguity)
        }
        try release.schemePolicy.requiredFields.check(request, claim: claim)
        if claim.refersToWorkspace,
            let contradiction = claim.contradiction(
                to: release.platform, version: release.version, workspace: workspace)
        {
            throw Refusal(.badSignature, detail: contradiction)
        }
        if case .leftOpen = claim.body, case .refused = release.schemePolicy.unsignedPayload {
            throw Refusal(
                .bodyMismatch, detail: "the body is not signed, and app \(release.app) does not allow that")
        }
        let edition: AppRelease.Edition = signer === current ? .current : .next
        return SignatureProof(
            claim, release: release, session: session, edition: edition, isSafe: request.isSafe,
            fingerprint: fingerprint)
    }

    /// The key that verifies the claim's signature for any canonical form of the request; nil if none does.
    /// `workspace` contains the standard form at first, and afterwards the form that verified.
    static func signer(
        of claim: Claim, request: Request, scheme: any Scheme, current: SigningKey, next: SigningKey?,
        workspace: inout Workspace
    ) throws(Refusal) -> SigningKey? {
        var attempt = 0
        repeat {
            if case .equal = compare(claim, with: current, workspace: workspace) { return current }
            if let next, case .equal = compare(claim, with: next, workspace: workspace) { return next }
            attempt += 1
        } while try scheme.writeAlternative(attempt - 1, for: claim, of: request, into: &workspace)
            == .written
        return nil
    }

    /// Whether the claim's signature is that of the string to sign in `workspace` under `key`.
    static func compare(
        _ claim: Claim, with key: SigningKey, workspace: borrowing Workspace
    ) -> ConstantTime.Verdict {
        claim.compare(with: key, workspace: workspace)
    }

    /// The refusal if no key verifies the signature. The keys' algorithms are not secret, so the detail names
    /// them.
    private static func mismatch(of claim: Claim, key candidate: VerificationKey) -> Refusal {
        let keys = [candidate.key, candidate.nextKey].compactMap(\.self)
        if let named = claim.namedAlgorithm, !keys.contains(where: { $0.algorithm == named }) {
            return Refusal(
                .badSignature,
                detail:
                    "alg: the message says \"\(named.rawValue)\"; the key is for "
                    + "\"\(candidate.key.algorithm.rawValue)\""
            )
        }
        let kind = candidate.key.publicKey == nil ? "MAC" : "signature"
        return Refusal(
            .badSignature, detail: "the \(kind) of the \(claim.scheme.rawValue) string to sign differs")
    }

    /// Whether the sent signature equals one that was computed in another way, for explanations.
    static func compare(_ other: Span<UInt8>, withSent sent: MAC) -> ConstantTime.Verdict {
        ConstantTime.equals(other, sent.span)
    }
}

extension AppRelease {
    /// Refuses a scheme that the app's policy does not allow.
    func checkAllowed() throws(Refusal) {
        guard !schemePolicy.isAllowed else { return }
        throw Refusal(.schemeNotAllowed, detail: "app \(app) does not allow \(scheme.rawValue)")
    }
}

extension VerificationKey {
    func checkKnown(_ claim: Claim) throws(Refusal) {
        guard isDecoy else { return }
        throw Refusal(.unknownKey, detail: "keyid \(claim.keyID): no such key for \(claim.scheme.rawValue)")
    }

    fileprivate func place(of claim: Claim, from network: [UInt8]) -> PublicKeyFailureLimiter.FailureKey? {
        PublicKeyFailureLimiter.FailureKey(isDecoy ? nil : claim.keyID, from: network)
    }

    /// The release whose policy applies. A session's request names it beside the token. It must be of the
    /// session's app and platform; otherwise the holder of a session could choose another app's policy.
    fileprivate func callingRelease(_ claim: Claim) throws(Refusal) -> AppRelease {
        if case .release(let release) = owner { return release }
        guard case .session(let session, _, let named) = owner else { throw Refusal(.unknownKey) }
        guard let release = named else {
            guard let named = claim.release else {
                throw Refusal(
                    .badSignature, detail: claim.unmetRequirements.descriptions.joined(separator: "; "))
            }
            throw Refusal(
                .badSignature, detail: "countersign-release: \(named) is no release of message-signatures")
        }
        guard release.app == session.app, release.platform == session.platform else {
            throw Refusal(
                .badSignature,
                detail:
                    "countersign-release: \(release.id) is of \(release.app) for \(release.platform);"
                    + " the session is of "
                    + "\(session.app) for \(session.platform)")
        }
        return release
    }
}

extension Claim {
    /// The scope in which a nonce may be used once: the release's key id, or the part of a session's token
    /// that is the same in all epochs, so that a renewed key does not make a nonce usable again.
    func replayScope(of release: AppRelease, session: Session?) -> KeyID {
        if release.schemePolicy.isReplayedAcrossKeys, let shared = ReplayEntry.allKeys { return shared }
        return session == nil ? release.id : keyID.prefix(SessionToken.sessionLength)
    }

    /// The replay key that may be used once; nil if the request may repeat.
    func replayKey(under rule: Policy.ReplayRule, isSafe: Bool) -> ReplayKey? {
        switch (replay, rule) {
        case (.nonce(let nonce), _): nonce
        case (.signature, .strict): mac
        case (.signature, .unsafeOnly): isSafe ? nil : mac
        case (.signature, .off), (.impossible, _): nil
        }
    }
}

extension Request {
    /// Whether the method is safe. Source: RFC 9110 §9.2.1; of its safe methods, only GET and HEAD count
    /// here, because backends honour those.
    package var isSafe: Bool {
        switch method.count {
        case 3: matches(method, text: "GET")
        case 4: matches(method, text: "HEAD")
        default: false
        }
    }
}

/// Selects one of several signatures: the one that the message marks, unless the policy of its key's release
/// names another label.
extension VerificationKey {
    /// Whether ``labelOverride(for:in:)`` has anything to decide.
    func mayChooseLabel(for claim: Claim) -> Bool {
        if case .ambiguous = claim.selection { return true }
        return release?.schemePolicy.hasLabel ?? false
    }

    /// The label to read instead of the claim's; nil if the claim's counts. Refuses a message that does not
    /// mark a signature if the policy names no label either.
    func labelOverride(for claim: Claim, in request: Request) throws(Refusal) -> String? {
        guard let release else { return try claim.requireDefiniteSelection() }
        return try release.schemePolicy.labelOverride(for: claim, in: request)
    }
}

extension SchemePolicy {
    func labelOverride(for claim: Claim, in request: Request) throws(Refusal) -> String? {
        guard let label else { return try claim.requireDefiniteSelection() }
        return request.head[claim.label.range].elementsEqual(label.utf8) ? nil : label
    }
}

extension Claim {
    fileprivate func requireDefiniteSelection() throws(Refusal) -> String? {
        if selection == .definite { return nil }
        throw Refusal(
            .malformed, detail: "several signatures, none with tag=\"countersign\": which one is meant?")
    }
}

extension SchemeRegistry {
    /// The claim of the signature with that label, in a request that bears signs of the scheme.
    func claim(
        in request: Request, labelled label: String, scheme: SchemeName, workspace: inout Workspace
    ) throws(Refusal) -> Claim {
        guard
            let claim = try self.scheme(named: scheme)?.claim(
                in: request, labelled: label, workspace: &workspace)
        else {
            throw Refusal(.unsigned)
        }
        return claim
    }
}
