import CountersignSchemes
import CountersignWire

/// Checks beside the signature that need only the head: the gateway must not buffer a body for a replay, for
/// an ended session, or for a route whose required session is missing. These results are provisional:
/// whatever can change before the body arrives is checked again.
struct HeadCheck: Sendable {
    private let replay: any ReplayGuard
    private let freshness: FreshnessCheck
    private let releases: ReleaseCheck

    init(replay: any ReplayGuard, freshness: FreshnessCheck, releases: ReleaseCheck) {
        self.replay = replay
        self.freshness = freshness
        self.releases = releases
    }

    func check(
        _ request: Request, recordingIn judgement: Judgement, from network: () -> [UInt8],
        to destination: RequestDestination,
        as effect: ReleaseCheck.Effect?, at now: Int64
    ) throws(Refusal) {
        guard request.bodyState == .awaited, let claim = judgement.claim, let key = judgement.verificationKey
        else { return }
        if claim.inputSource == .awaitedBody {
            try checkUnproven(
                request, claim: claim, key: key, recordingIn: judgement, from: network, as: effect, at: now)
        }
        guard let release = key.release else { return }
        judgement.step = .replay
        // A proof's entry has its fingerprint already.
        if let entry = judgement.fresh?.replayEntry
            ?? ReplayEntry(of: claim, under: key, isSafe: request.isSafe, at: now)
        {
            try replay.lookUp(entry)
        }
        judgement.step = .session
        if let session = key.session {
            try SessionCheck.check(session, of: release, to: destination, at: now)
        } else if destination == .backend, claim.scheme == .messageSignatures,
            !request.names.contains(.authorization)
        {
            let route = try release.policy.routes.decision(for: request)
            if route.level >= .session {
                _ = try release.observing(release.refusalForMissingSession(on: route), on: route, at: now)
            }
        }
    }

    /// Checks the unproven claim of a head whose signature needs the body, so that the gateway buffers no
    /// body for a request that would be refused even if its signature verified.
    private func checkUnproven(
        _ request: Request, claim: Claim, key: VerificationKey, recordingIn judgement: Judgement,
        from network: () -> [UInt8],
        as effect: ReleaseCheck.Effect?, at now: Int64
    ) throws(Refusal) {
        try key.checkKnown(claim)
        guard let release = key.release else { return }
        judgement.step = .policy
        try release.checkAllowed()
        judgement.step = .freshness
        _ = try freshness.check(
            created: claim.created, expires: claim.expires, lifetime: claim.lifetime,
            policy: release.schemePolicy, at: now)
        judgement.step = .release
        _ = try releases.check(
            release, in: key.session, effect: effect ?? (request.isSafe ? .reads : .changes), from: network,
            at: now)
    }
}
