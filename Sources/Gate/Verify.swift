import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Says that a signature held, and for what. Only ``Verify`` can make one, and it can be used once.
package struct Proof: ~Copyable, Sendable {
    let release: ReleaseKey
    let session: Session?
    let edition: ReleaseKey.Edition
    /// Within which a nonce is used once: the release's key id; of a session the part of its token that is the same in
    /// all epochs, so that a renewed key brings no nonce back.
    let scope: KeyID
    let created: Claim.Created
    /// Whole Unix seconds.
    let expires: Int64?
    /// Seconds from `created`, for a signature that says how long it means to live.
    let lifetime: Int64?
    let replayKey: Claim.ReplayKey?
    let coveredFields: FieldSet
    let body: BodyExpectation

    fileprivate init(
        _ claim: Claim, _ release: ReleaseKey, _ session: Session?, _ edition: ReleaseKey.Edition, isSafe: Bool
    ) {
        self.release = release
        self.session = session
        self.edition = edition
        scope = claim.scope(of: release, session)
        created = claim.created
        expires = claim.expires
        lifetime = claim.lifetime
        replayKey = claim.replayKey(under: release.allowance.replay, isSafe: isSafe)
        coveredFields = claim.coveredFields
        body = claim.body
    }
}

/// Does the signature hold, and is it one that the app's policy takes?
package struct Verify: Sendable {
    private let schemes: Registry
    private let failures: PublicKeyFailures

    package init(_ schemes: Registry, _ failures: PublicKeyFailures) {
        self.schemes = schemes
        self.failures = failures
    }

    /// `judgement` is told of the key under which the signature holds, and of the step. `network` is where the client calls
    /// from, and is asked for with key pairs only; `now` is in whole Unix seconds.
    package func callAsFunction(
        _ request: Request, claim: Claim, candidate: Candidate, noting judgement: Judgement,
        from network: () -> [UInt8], at now: Int64, _ workspace: inout Workspace
    ) throws(Refusal) -> Proof {
        judgement.step = .signature
        guard let scheme = schemes.scheme(named: claim.scheme) else { throw Refusal(.unsigned) }
        workspace.publicURL = candidate.release?.allowance.publicURL
        workspace.formMD5Key = candidate.release?.allowance.formMD5Key ?? .pair
        try scheme.spell(claim, request, &workspace)
        let place = candidate.isOfKeyPair ? candidate.place(of: claim, from: network()) : nil
        if let place { try failures.check(place, at: now) }
        let signer = try Verify.signer(of: claim, request, scheme, candidate, &workspace)
        if signer == nil, let place { failures.count(place, at: now) }
        try candidate.checkKnown(claim)
        guard let signer else { throw Verify.failure(claim, candidate) }
        judgement.signer = signer
        judgement.step = .policy
        let release = try candidate.callingRelease(claim)
        try release.checkAllowed()
        if signer.algorithm == .rsaV15, release.policy.rsaV15 == .refused {
            throw Refusal(.schemeNotAllowed, "app \(release.app) does not allow keys for rsa-v1_5-sha256")
        }
        guard claim.shortfalls.isEmpty else {
            throw Refusal(.badSignature, claim.shortfalls.descriptions.joined(separator: "; "))
        }
        if let ambiguity = scheme.ambiguity(of: request, workspace) { throw Refusal(.malformed, ambiguity) }
        try release.allowance.requiredFields.check(request, claim)
        if let contradiction = claim.contradiction(to: release.platform, release.version, workspace) {
            throw Refusal(.badSignature, contradiction)
        }
        if case .leftOpen = claim.body, release.allowance.unsignedPayload == .refused {
            throw Refusal(.bodyMismatch, "the body is not signed, and app \(release.app) does not allow that")
        }
        let edition: ReleaseKey.Edition = signer === candidate.key ? .current : .next
        return Proof(claim, release, candidate.session, edition, isSafe: request.isSafe)
    }

    /// The key under which the claim's signature holds, for any spelling of the request; nil where it does not. The
    /// first spelling lies in `workspace`, and the one that holds is left there.
    static func signer(
        of claim: Claim, _ request: Request, _ scheme: any Scheme, _ candidate: Candidate,
        _ workspace: inout Workspace
    ) throws(Refusal) -> SigningKey? {
        var attempt = 0
        repeat {
            if compare(claim, candidate.key, workspace) == .equal { return candidate.key }
            if let next = candidate.nextKey, compare(claim, next, workspace) == .equal { return next }
            attempt += 1
        } while try scheme.respell(attempt - 1, claim, request, &workspace) == .written
        return nil
    }

    /// Whether the string to sign, which lies in `workspace`, has the claim's signature under `key`.
    static func compare(
        _ claim: Claim, _ key: SigningKey, _ workspace: borrowing Workspace
    ) -> ConstantTime.Verdict {
        #if SABOTAGE
            if Sabotage.isOn(.macComparedByteByByte) { return claim.compareByteByByte(with: key, workspace) }
        #endif
        return claim.compare(with: key, workspace)
    }

    /// Why none of the keys fits. Their algorithms are no secret: the detail names them.
    private static func failure(_ claim: Claim, _ candidate: Candidate) -> Refusal {
        let keys = [candidate.key, candidate.nextKey].compactMap(\.self)
        if let named = claim.namedAlgorithm, !keys.contains(where: { $0.algorithm == named }) {
            return Refusal(
                .badSignature,
                "alg: the message says \"\(named.rawValue)\"; the key is for \"\(candidate.key.algorithm.rawValue)\"")
        }
        let kind = candidate.key.publicKey == nil ? "MAC" : "signature"
        return Refusal(.badSignature, "the \(kind) of the \(claim.scheme.rawValue) string to sign differs")
    }

    /// Whether the signature that was sent is that of another make, for explanations.
    static func compare(_ other: Span<UInt8>, _ sent: MAC) -> ConstantTime.Verdict {
        ConstantTime.equals(other, sent.span)
    }
}

extension ReleaseKey {
    /// Whether the app's policy lets this key's scheme speak at all.
    func checkAllowed() throws(Refusal) {
        guard !allowance.isAllowed else { return }
        throw Refusal(.schemeNotAllowed, "app \(app) does not allow \(scheme.rawValue)")
    }
}

extension Candidate {
    func checkKnown(_ claim: Claim) throws(Refusal) {
        guard isNobodys else { return }
        throw Refusal(.unknownKey, "keyid \(claim.keyID): no such key for \(claim.scheme.rawValue)")
    }

    /// Whether any of its keys is the public half of a pair, which takes long to verify with.
    fileprivate var isOfKeyPair: Bool { key.publicKey != nil || nextKey?.publicKey != nil }

    fileprivate func place(of claim: Claim, from network: [UInt8]) -> PublicKeyFailures.Place? {
        PublicKeyFailures.Place(isNobodys ? nil : claim.keyID, from: network)
    }

    /// The release by whose policy the request is judged. A session's requests name it beside their token: one of the
    /// session's app and platform, or whoever holds a session could choose another app's rules for it.
    fileprivate func callingRelease(_ claim: Claim) throws(Refusal) -> ReleaseKey {
        guard let session else {
            guard let release else { throw Refusal(.unknownKey) }
            return release
        }
        guard let release else {
            guard let named = claim.release else {
                throw Refusal(.badSignature, claim.shortfalls.descriptions.joined(separator: "; "))
            }
            throw Refusal(.badSignature, "countersign-release: \(named) is no release of message-signatures")
        }
        guard release.app == session.app, release.platform == session.platform else {
            throw Refusal(
                .badSignature,
                "countersign-release: \(release.id) is of \(release.app) for \(release.platform); the session is of "
                    + "\(session.app) for \(session.platform)")
        }
        return release
    }
}

extension Claim {
    /// Within which a nonce is used once.
    func scope(of release: ReleaseKey, _ session: Session?) -> KeyID {
        session == nil ? release.id : keyID.prefix(SessionToken.sessionLength)
    }

    /// What must not have been seen before; nil where the request may repeat.
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
    /// Whether it asks for nothing to be changed. Source: RFC 9110 §9.2.1, of which backends keep GET and HEAD.
    package var isSafe: Bool { matches(method, "GET") || matches(method, "HEAD") }
}
