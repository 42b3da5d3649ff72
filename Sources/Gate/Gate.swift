import CountersignSchemes
import CountersignWire

/// Is this request good? Read this first: each line is one file.
///
/// One gate for each event loop is fastest; sharing one is safe.
package final class Gate: Sendable {
    let authorities: Authorities
    let schemes: Registry
    let keys: KeyRing
    private let replay: any ReplayGuard
    private let clock: any TimeSource
    private let verify: Verify
    private let freshness = Freshness()
    private let releases = Releases()
    private let bearers: Bearers
    private let sessions: Sessions
    private let devices: DeviceSignatures
    let workspaces = WorkspacePool()

    package init(
        authorities: Authorities, schemes: Registry = .standard, keys: any KeySource,
        sessions: any SessionSource = NoSessions(), replay: any ReplayGuard, clock: any TimeSource
    ) {
        self.authorities = authorities
        self.schemes = schemes
        self.keys = KeyRing(keys, sessions)
        self.bearers = Bearers(sessions)
        self.sessions = Sessions(sessions)
        devices = DeviceSignatures(sessions)
        self.replay = replay
        self.clock = clock
        self.verify = Verify(schemes)
    }

    /// Who is calling, once the request has proved it; otherwise why not. A caller whose `body` is not settled must be
    /// streamed through a ``BodyDigest``. `network` is where the client calls from, as bytes, and is seldom asked
    /// for; `effect` nil goes by the method.
    nonisolated(nonsending) package func judge(
        _ request: Request, from network: () -> [UInt8] = { [] }, for destination: Destination = .backend,
        as effect: Releases.Effect? = nil
    ) async throws(Refusal) -> Caller {
        let work = workspaces.take()
        defer { workspaces.put(back: work) }

        try authorities.check(request)
        var claim = try schemes.claim(in: request, &work.space)  // exactly one scheme may claim it
        var key = try await keys.key(for: claim)  // unknown ids take the same time
        if let label = try key.otherLabel(than: claim, in: request) {  // of several signatures, a policy may choose
            claim = try schemes.claim(in: request, labelled: label, claim.scheme, &work.space)
            key = try await keys.key(for: claim, ofAppOf: key)
        }
        let proof = try verify(request, claim, key, &work.space)  // ~Copyable; only Verify can make one
        let fresh = try freshness.check(proof, at: clock.now)
        var caller = try await replay.admit(fresh)  // one atomic insert, after the signature
        caller.update = try releases.check(
            caller, effect ?? (request.isSafe ? .reads : .changes), from: network, at: clock.now)
        if destination != .login { caller = try await bearers.identify(caller, sending: request, claim, work) }
        caller = try await sessions.resume(caller, sending: request, to: destination, at: clock.now)
        if destination == .backend { try await devices.check(caller, sending: request, signed: claim.label, work) }
        return caller
    }

    /// Why a request was refused, where the app of the release that it names wants its callers told (policy `debug`);
    /// nil for all others, for whom none of this work is done.
    nonisolated(nonsending) package func explanation(
        of refusal: Refusal, for request: Request, _ standing: Standing
    ) async -> Explanation? {
        var release = standing.release
        if release == nil { release = await self.release(nearlyNamedBy: request, standing) }
        guard let release, release.policy.detail == .exact else { return nil }
        var question = Explanation.Question(
            scheme: release.scheme, keyID: release.id, key: release.key, at: clock.now, policy: release.policy)
        question.nextKey = release.nextKey
        question.refusal = refusal
        question.time = .atMost(50_000_000)
        question.others = await keys.siblings(of: release).map(KnownKey.init(of:))
        if let (session, key) = standing.session {
            question.ask(about: session, standing.keyID, key, callingFrom: release)
        }
        let explanation = Explanation(of: request, question, schemes: schemes)
        // A key id that only looks like one of ours is nobody's, unless the signature says otherwise.
        return refusal.code == .unknownKey && explanation.cause == nil ? nil : explanation
    }

    /// The release of a key id that is found although the claim around it cannot be read; for a session that names no
    /// release, one of those that it could name.
    nonisolated(nonsending) private func release(
        nearlyNamedBy request: Request, _ standing: Standing
    ) async -> ReleaseKey? {
        if let (session, _) = standing.session { return await keys.release(fitFor: session) }
        for (scheme, id) in SentPlace.keyIDs(in: request, schemes) {
            if let release = try? await keys.release(of: id), release.scheme == scheme { return release }
        }
        return nil
    }

    /// How to answer this request, whatever becomes of it.
    package func dialect(for request: Request) -> AnswerDialect { schemes.dialect(for: request) }
}
