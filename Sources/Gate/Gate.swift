import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Decides whether one request may pass, as a fixed list of steps; most steps have a file of their own. Start
/// reading here.
///
/// One gate for each event loop is fastest; sharing one is safe.
package final class Gate: Sendable {
    /// How often a judgement begins at most. It has a few lookups, and a result in memory may be replaced
    /// before it is used.
    private static let mostLookups = 6

    let allowedHosts: AllowedHosts
    let schemes: SchemeRegistry
    let keys: KeyRing
    let clock: any TimeSource
    private let replay: any ReplayGuard
    private let verifier: SignatureVerifier
    private let freshness = FreshnessCheck()
    private let bodyCheck = BodyCheck()
    private let releaseCheck = ReleaseCheck()
    private let bearers: BearerTokenResolver
    private let tokens: TokenVerifier
    private let tickets: UploadTicketVerifier
    private let sessions: SessionCheck
    private let devices: DeviceSignatureVerifier
    private let headCheck: HeadCheck
    /// Nil where the source of sessions may wait for its store.
    private let lookups: (any DeferredLookups)?
    private let workspaces = ObjectPool(limit: 64) { WorkspaceLease() }
    private let judgements = ObjectPool(limit: 64) { Judgement() }

    /// `failures` is shared by all gates of a process; `lookups` are those of `sessions`, if it has any.
    package init(
        allowedHosts: AllowedHosts, schemes: SchemeRegistry = .standard, keys: any ReleaseSource,
        sessions: any SessionSource = EmptySessionSource(), replay: any ReplayGuard,
        failures: PublicKeyFailureLimiter = PublicKeyFailureLimiter(),
        lookups: (any DeferredLookups)? = nil, clock: any TimeSource
    ) {
        self.allowedHosts = allowedHosts
        self.lookups = lookups
        self.schemes = schemes
        let ring = KeyRing(releases: keys, sessions: sessions)
        self.keys = ring
        self.bearers = BearerTokenResolver(sessions)
        tokens = TokenVerifier(ring, sessions: sessions)
        tickets = UploadTicketVerifier(ring, sessions: sessions)
        self.sessions = SessionCheck(sessions)
        devices = DeviceSignatureVerifier(sessions: sessions, failures: failures)
        self.replay = replay
        headCheck = HeadCheck(replay: replay, freshness: freshness, releases: releaseCheck)
        self.clock = clock
        verifier = SignatureVerifier(schemes: schemes, failures: failures)
    }

    /// A judgement without any step recorded; return it with ``endJudgement(_:)``.
    package func beginJudgement() -> Judgement { judgements.take() }

    package func endJudgement(_ judgement: Judgement) {
        judgement.reset()
        judgements.put(back: judgement)
    }

    /// The lookup that must be finished before the judgement that has just been refused begins again, by
    /// ``finish(_:for:)``; nil if the refusal stands.
    package func takeDeferredLookup() -> DeferredLookup? { lookups?.take() }

    /// Finishes a lookup, and makes `judgement` ready to begin again.
    package func finish(
        _ lookup: DeferredLookup, for judgement: Judgement
    ) async throws(Refusal) {
        let finding = try await lookup()
        let isProxied = judgement.isProxied
        judgement.reset()
        judgement.isProxied = isProxied
        judgement.finding = finding
    }

    /// Runs `body`, a judgement, and again after each lookup that must be finished for it.
    package func waitingForLookups<Result>(
        of judgement: Judgement, body: () throws(Refusal) -> Result
    ) async throws(Refusal) -> Result {
        for _ in 0..<Gate.mostLookups {
            let lookup: DeferredLookup
            do throws(Refusal) {
                return try body()
            } catch {
                guard let noted = takeDeferredLookup() else { throw error }
                lookup = noted
            }
            try await finish(lookup, for: judgement)
        }
        throw Refusal(.unavailable, detail: "sessions: too many lookups", retryAfter: 1)
    }

    /// Judges the head of a request before its body has arrived, so that a refusal reads no body. The result
    /// is recorded in `judgement`. `network` returns the client's network address as bytes and is seldom
    /// called; a nil `effect` is derived from the method.
    package func judgeHead(
        of request: Request, recordingIn judgement: Judgement, from network: () -> [UInt8] = { [] },
        for destination: RequestDestination = .backend, as effect: ReleaseCheck.Effect? = nil
    ) throws(Refusal) {
        lookups?.begin(with: judgement.finding)
        let work = workspaces.take()
        defer { workspaces.put(back: work) }
        do {
            let now = clock.now
            judgement.fresh = try prove(
                request, recordingIn: judgement, from: network, for: destination, as: effect, at: now,
                lease: work)
            try headCheck.check(
                request, recordingIn: judgement, from: network, to: destination, as: effect, at: now)
        } catch {
            throw judgement.refuse(error, by: clock)
        }
        // What a lookup has found may not be true any more when the body has arrived.
        // Tested first: the value is large, and seldom there.
        if case .some = judgement.finding, request.bodyState == .awaited { judgement.finding = nil }
        // Other requests use the workspace before the body arrives.
        if judgement.claim?.refersToWorkspace == true { judgement.fresh = nil }
    }

    /// Verifies the request and returns its caller; throws the refusal otherwise. If the caller's `body` is
    /// not settled, stream the body through a ``BodyDigest``. Continues from the result of
    /// ``judgeHead(of:recordingIn:from:for:as:)`` if that was called.
    package func judge(
        _ request: Request, recordingIn judgement: Judgement, from network: () -> [UInt8] = { [] },
        for destination: RequestDestination = .backend, as effect: ReleaseCheck.Effect? = nil
    ) async throws(Refusal) -> Caller {
        let ready = try await waitingForLookups(of: judgement) { () throws(Refusal) in
            try judgeIfReady(request, recordingIn: judgement, from: network, for: destination, as: effect)
        }
        if let ready { return ready }
        return try await judgeAfterWaiting(
            request, recordingIn: judgement, from: network, for: destination)
    }

    /// The same, as far as that needs no waiting. Nil if the replay guard must wait: then
    /// ``judgeAfterWaiting(_:recordingIn:from:for:)`` goes on. Not inlined into asynchronous callers, whose
    /// frames would grow by the values of all steps.
    @inline(never)
    package func judgeIfReady(
        _ request: Request, recordingIn judgement: Judgement, from network: () -> [UInt8] = { [] },
        for destination: RequestDestination = .backend, as effect: ReleaseCheck.Effect? = nil
    ) throws(Refusal) -> Caller? {
        lookups?.begin(with: judgement.finding)
        let work = workspaces.take()
        do {
            let now = clock.now
            var proof = judgement.fresh.take()
            if proof == nil, judgement.token == nil, judgement.ticket == nil {
                proof = try prove(
                    request, recordingIn: judgement, from: network, for: destination, as: effect, at: now,
                    lease: work)
            }
            guard let fresh = proof.take() else {
                let caller = try admitUnsigned(request, recordingIn: judgement, lease: work)
                workspaces.put(back: work)
                return caller
            }
            let whole = try complete(fresh, of: request, recordingIn: judgement, at: now)
            if let lookups {
                judgement.early = try lookUpEarly(
                    whole, sending: request, to: destination, noting: lookups, lease: work)
            }
            let admission = ReplayAdmission(whole)
            judgement.step = .replay
            // One atomic insertion, after the signature.
            guard try admission.insertIfReady(into: replay) else {
                judgement.waiting = consume admission
                judgement.lease = work
                return nil
            }
            let admitted = admission.admitted()
            let session = try finish(
                admitted, sending: request, recordingIn: judgement, from: network, to: destination, at: now,
                lease: work)
            workspaces.put(back: work)
            return judgement.admit(admitted, session: session)
        } catch {
            workspaces.put(back: work)
            throw judgement.refuse(error, by: clock)
        }
    }

    /// Goes on where ``judgeIfReady(_:recordingIn:from:for:as:)`` returned nil, with the same arguments. The
    /// only step that may suspend the request.
    @inline(never)
    package func judgeAfterWaiting(
        _ request: Request, recordingIn judgement: Judgement, from network: () -> [UInt8],
        for destination: RequestDestination
    ) async throws(Refusal) -> Caller {
        guard let admission = judgement.waiting.take(), let work = judgement.lease.take()
        else { throw Refusal(.unsigned) }
        defer { workspaces.put(back: work) }
        do {
            try await admission.insert(into: replay)
            let admitted = admission.admitted()
            let session = try finish(
                admitted, sending: request, recordingIn: judgement, from: network, to: destination,
                at: clock.now, lease: work)
            return judgement.admit(admitted, session: session)
        } catch {
            throw judgement.refuse(error, by: clock)
        }
    }

    /// Identifies the caller of a request to a route that accepts any caller: refuses nothing that can be
    /// looked up, and does not consult the replay guard.
    package func identify(_ request: Request, recordingIn judgement: Judgement) async throws(Refusal) {
        try await waitingForLookups(of: judgement) { () throws(Refusal) in
            do throws(Refusal) {
                try identifyIfReady(request, recordingIn: judgement)
            } catch {
                if let lookups, lookups.isNoted { throw error }
            }
        }
    }

    private func identifyIfReady(
        _ request: Request, recordingIn judgement: Judgement
    ) throws(Refusal) {
        lookups?.begin(with: judgement.finding)
        let work = workspaces.take()
        defer { workspaces.put(back: work) }
        _ = try prove(
            request, recordingIn: judgement, from: { [] }, for: .ownRoute, as: .reads, at: clock.now,
            lease: work)
    }

    /// The first stage: verifies the signature or token and finds the release and session. Nil if the proof
    /// is a token or a ticket, which `judgement` has then, or if only the body can have a signature.
    private func prove(
        _ request: Request, recordingIn judgement: Judgement, from network: () -> [UInt8],
        for destination: RequestDestination,
        as effect: ReleaseCheck.Effect?, at now: Int64, lease work: WorkspaceLease
    ) throws(Refusal) -> FreshProof? {
        let traces = try judgement.detect(schemes, in: request, keys: keys)
        try allowedHosts.check(request)
        judgement.step = .claim
        if request.names.contains(.countersignTicket) {
            judgement.ticket = try tickets.prove(
                request, recordingIn: judgement, from: network, for: destination, at: now)
            return nil
        }
        // A request without signs of any scheme may still bear a token alone.
        if !traces.hasSignature, destination == .backend,
            let app = try tokens.appAcceptingTokens(for: request)
        {
            judgement.token = try tokens.prove(
                request, to: app, recordingIn: judgement, from: network, as: effect, at: now)
            return nil
        }
        // Exactly one scheme may claim the request. None claims it from the head if the signature can only be
        // in the body.
        if work.workspace.spareClaim == nil { work.workspace.spareClaim = judgement.spareClaim.take() }
        guard var claim = try schemes.claim(in: request, traces: traces, workspace: &work.workspace) else {
            return nil
        }
        judgement.step = .key
        // Looking up an unknown key id takes the same time.
        var key = try keys.key(for: claim, recent: &work.recent)
        judgement.record(claim, key: key)
        // If the message has several signatures, a policy may choose one.
        if key.mayChooseLabel(for: claim), let label = try key.labelOverride(for: claim, in: request) {
            claim = try schemes.claim(
                in: request, labelled: label, scheme: claim.scheme, workspace: &work.workspace)
            key = try keys.key(for: claim, ofAppOf: key, recent: &work.recent)
            judgement.record(claim, key: key)
        }
        if case .awaitedBody = claim.inputSource { return nil }
        // The guard's memory is mostly not in the processor's cache: it is fetched while the MAC is computed.
        let fingerprint = ReplayEntry(of: claim, under: key, isSafe: request.isSafe, at: now)
            .flatMap { $0.prefetched(by: replay).fingerprint }
        let proof = try verifier.verify(
            request, claim: claim, key: key, recordingIn: judgement, from: network,
            replayFingerprint: fingerprint, at: now, workspace: &work.workspace)
        judgement.step = .freshness
        let fresh = try freshness.check(proof, at: now)
        judgement.step = .release
        judgement.update = try releaseCheck.check(
            fresh.release, in: fresh.session, effect: effect ?? (fresh.isSafe ? .reads : .changes),
            from: network, at: now)
        return fresh
    }

    /// The second stage: checks the body, once it is complete or streams.
    private func complete(
        _ fresh: consuming FreshProof, of request: Request, recordingIn judgement: Judgement, at now: Int64
    ) throws(Refusal) -> CompleteProof {
        judgement.step = .body
        try judgement.detectInBody(schemes, in: request)  // refuses signs of a second scheme
        return try bodyCheck.check(request, fresh: fresh, at: now)
    }

    /// Looks up what ``finish(_:sending:recordingIn:from:to:at:lease:)`` needs. Refuses only if a lookup was
    /// noted: other refusals have their place after the replay guard.
    private func lookUpEarly(
        _ proof: borrowing CompleteProof, sending request: Request, to destination: RequestDestination,
        noting lookups: any DeferredLookups, lease work: WorkspaceLease
    ) throws(Refusal) -> EarlyLookup {
        let release = proof.fresh.release
        let proven = proof.fresh.session
        var found = EarlyLookup(session: .success(proven))
        if destination != .login {
            do throws(Refusal) {
                found.session = .success(
                    try bearers.session(
                        of: release, proven: proven, sending: request, claim: proof.fresh.claim, lease: work))
            } catch {
                found.session = .failure(error)
            }
        }
        if destination == .backend, let proven, proven.kind == .device,
            let route = try? release.decision(for: request), case .device = route.level
        {
            found.deviceKey = try? devices.key(of: proven)
        }
        guard !lookups.isNoted else {
            throw Refusal(.unavailable, detail: "sessions: a lookup is not finished", retryAfter: 5)
        }
        return found
    }

    /// The last stage: finds and checks the session and the device of a request that the replay guard
    /// admitted.
    private func finish(
        _ admitted: borrowing CompleteProof, sending request: Request, recordingIn judgement: Judgement,
        from network: () -> [UInt8], to destination: RequestDestination, at now: Int64,
        lease work: WorkspaceLease
    ) throws(Refusal) -> Session? {
        judgement.step = .session
        let release = admitted.fresh.release
        let claim = admitted.fresh.claim
        var session = admitted.fresh.session
        var deviceKey: P256Point?
        // Tested first: the value is large, and seldom there.
        if case .some = judgement.early, let early = judgement.early {
            session = try early.session.get()
            deviceKey = early.deviceKey
        } else if destination != .login {
            session = try bearers.session(
                of: release, proven: session, sending: request, claim: claim, lease: work)
        }
        let route = destination == .backend ? try release.decision(for: request) : nil
        do throws(Refusal) {
            try sessions.check(session, of: release, on: route, to: destination, at: now)
            judgement.step = .device
            if let route, case .device = route.level {
                try devices.check(
                    session, of: release, sending: request, on: route, signed: claim.label, from: network,
                    at: now, key: deviceKey, lease: work)
            }
        } catch {
            judgement.observed = try release.observing(error, on: route, at: now)
        }
        judgement.step = .end
        return session
    }

    /// The same stages for a caller without a signature, whose proof is an upload ticket or a token.
    private func admitUnsigned(
        _ request: Request, recordingIn judgement: Judgement, lease work: WorkspaceLease
    ) throws(Refusal) -> Caller {
        if let proof = judgement.ticket.take() {
            return try admit(proof, sending: request, recordingIn: judgement)
        }
        guard let proof = judgement.token.take() else { throw Refusal(.unsigned) }
        return try admit(Caller(proof), sending: request, recordingIn: judgement, lease: work)
    }

    /// A caller whose proof is a token alone: there is no replay entry and no signature.
    private func admit(
        _ caller: Caller, sending request: Request, recordingIn judgement: Judgement,
        lease work: WorkspaceLease
    ) throws(Refusal) -> Caller {
        caller.update = judgement.update
        judgement.step = .session
        let route = try caller.release.policy.routes.decision(for: request)
        do throws(Refusal) {
            try sessions.check(caller, on: route, at: clock.now)
            judgement.step = .device
            if route.level == .device {
                try devices.check(
                    caller.session, of: caller.release, sending: request, on: route, signed: ByteRange.empty,
                    from: { [] }, at: clock.now, key: nil, lease: work)
            }
        } catch {
            caller.observed = try caller.release.observing(error, on: route, at: clock.now)
        }
        judgement.step = .end
        return caller
    }

    /// A caller whose proof is an upload ticket, which was checked against the head.
    private func admit(
        _ proof: consuming UploadTicketProof, sending request: Request, recordingIn judgement: Judgement
    ) throws(Refusal) -> Caller {
        judgement.step = .body
        if request.isBodyWhole { try proof.body.check(request.body.span) }
        let caller = Caller(proof)
        caller.update = judgement.update
        judgement.step = .end
        return caller
    }

    /// Judges a request whose body is complete or streams, without a separate judgement of the head.
    package func judge(
        _ request: Request, from network: () -> [UInt8] = { [] },
        for destination: RequestDestination = .backend,
        as effect: ReleaseCheck.Effect? = nil
    ) async throws(Refusal) -> Caller {
        let judgement = beginJudgement()
        defer { endJudgement(judgement) }
        return try await judge(request, recordingIn: judgement, from: network, for: destination, as: effect)
    }

    /// The judgement of a whole request, accepted or refused.
    package func judgement(
        of request: Request, for destination: RequestDestination = .backend
    ) async -> Judgement {
        let judgement = beginJudgement()
        _ = try? await judge(request, recordingIn: judgement, for: destination)
        return judgement
    }

    /// Refuses a request to another host, for routes that need no signature.
    package func checkHost(of request: Request) throws(Refusal) { try allowedHosts.check(request) }
}
