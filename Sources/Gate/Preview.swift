import CountersignSchemes
import CountersignWire

/// What can be told of a request while its body is awaited, beside its signature: a copy, a session that is
/// over or a route that needs one must not buy a held body. Nothing here is the last word: what may change
/// until the body is there is asked again.
struct Preview: Sendable {
    private let replay: any ReplayGuard
    private let freshness: Freshness
    private let releases: Releases

    init(replay: any ReplayGuard, freshness: Freshness, releases: Releases) {
        self.replay = replay
        self.freshness = freshness
        self.releases = releases
    }

    nonisolated(nonsending) func check(
        _ request: Request, _ judgement: Judgement, from network: () -> [UInt8], to destination: Destination,
        as effect: Releases.Effect?, at now: Int64
    ) async throws(Refusal) {
        guard request.bodyState == .awaited, let claim = judgement.claim, let key = judgement.candidate else { return }
        if claim.base == .awaitedBody {
            try checkUnproven(request, claim, key, judgement, from: network, as: effect, at: now)
        }
        guard let release = key.release else { return }
        judgement.step = .replay
        if let entry = ReplayEntry(of: claim, release, key.session, isSafe: request.isSafe, at: now) {
            try await replay.lookUp(entry.sharedByAllKeys ?? entry)
        }
        judgement.step = .session
        if let session = key.session {
            try Sessions.check(session, of: release, at: now)
        } else if destination == .backend, claim.scheme == .messageSignatures,
            !request.names.contains(.authorization)
        {
            let route = try release.policy.routes.decision(for: request)
            if route.level >= .session { throw release.needsSession(on: route) }
        }
    }

    /// What the head says without proof, where the body is needed for that: no body is taken in for what
    /// could not pass if all of it were true.
    private func checkUnproven(
        _ request: Request, _ claim: Claim, _ key: Candidate, _ judgement: Judgement, from network: () -> [UInt8],
        as effect: Releases.Effect?, at now: Int64
    ) throws(Refusal) {
        try key.checkKnown(claim)
        guard let release = key.release else { return }
        judgement.step = .policy
        try release.checkAllowed()
        judgement.step = .freshness
        _ = try freshness.judge(claim.created, claim.expires, claim.lifetime, release.allowance, at: now)
        judgement.step = .release
        _ = try releases.check(
            release, in: key.session, effect ?? (request.isSafe ? .reads : .changes), from: network, at: now)
    }
}

extension ReplayEntry {
    /// What would be inserted for that claim if it held; nil where nothing could be remembered of it.
    fileprivate init?(of claim: Claim, _ release: ReleaseKey, _ session: Session?, isSafe: Bool, at now: Int64) {
        guard let key = claim.replayKey(under: release.allowance.replay, isSafe: isSafe) else { return nil }
        self.init(
            keyID: claim.scope(of: release, session), scheme: claim.scheme, replayKey: key,
            created: claim.created.instant(release.allowance) ?? now, now: now)
    }
}
