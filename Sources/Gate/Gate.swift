import CountersignSchemes
import CountersignWire

/// Is this request good? Read this first: each line is one file.
///
/// One gate for each event loop is fastest; sharing one is safe.
package final class Gate: Sendable {
    let authorities: Authorities
    let schemes: Registry
    let keys: KeyRing
    let clock: any TimeSource
    private let replay: any ReplayGuard
    private let verify: Verify
    private let freshness = Freshness()
    private let bodyCheck = BodyCheck()
    private let releases = Releases()
    private let bearers: Bearers
    private let tokens: BareTokens
    private let tickets: UploadTickets
    private let sessions: Sessions
    private let devices: DeviceSignatures
    private let preview: Preview
    private let workspaces = Pool(most: 64) { WorkspaceLease() }
    private let judgements = Pool(most: 64) { Judgement() }

    /// `failures` is shared by all gates of a process.
    package init(
        authorities: Authorities, schemes: Registry = .standard, keys: any KeySource,
        sessions: any SessionSource = NoSessions(), replay: any ReplayGuard,
        failures: PublicKeyFailures = PublicKeyFailures(), clock: any TimeSource
    ) {
        self.authorities = authorities
        self.schemes = schemes
        let ring = KeyRing(keys, sessions)
        self.keys = ring
        self.bearers = Bearers(sessions)
        tokens = BareTokens(ring, sessions: sessions)
        tickets = UploadTickets(ring, sessions: sessions)
        self.sessions = Sessions(sessions)
        devices = DeviceSignatures(sessions, failures)
        self.replay = replay
        preview = Preview(replay: replay, freshness: freshness, releases: releases)
        self.clock = clock
        self.verify = Verify(schemes, failures)
    }

    /// A judgement of a request that nobody has looked at; ``end(_:)`` takes it back.
    package func begin() -> Judgement { judgements.take() }

    package func end(_ judgement: Judgement) {
        judgement.reset()
        judgements.put(back: judgement)
    }

    /// Judges from the head what can be judged without the body that is awaited, so that a refusal reads none of it. What
    /// it finds is in `judgement`. `network` is where the client calls from, as bytes, and is seldom asked for; `effect`
    /// nil goes by the method.
    nonisolated(nonsending) package func judgeHead(
        of request: Request, _ judgement: Judgement, from network: () -> [UInt8] = { [] },
        for destination: Destination = .backend, as effect: Releases.Effect? = nil
    ) async throws(Refusal) {
        let work = workspaces.take()
        defer { workspaces.put(back: work) }
        do throws(Refusal) {
            try await prove(request, judgement, from: network, for: destination, as: effect, work)
            try await preview.check(request, judgement, from: network, to: destination, as: effect, at: clock.now)
        } catch {
            judgement.refusal = error
            throw error
        }
        // What form-md5 read lies in the workspace, which others use while the body comes.
        if judgement.claim?.scheme == .formMD5 { judgement.fresh = nil }
    }

    /// Who is calling, once the request has proved it; otherwise why not. A caller whose `body` is not settled must be
    /// streamed through a ``BodyDigest``. Goes on from what ``judgeHead(of:_:from:for:as:)`` found, where that was asked.
    nonisolated(nonsending) package func judge(
        _ request: Request, _ judgement: Judgement, from network: () -> [UInt8] = { [] },
        for destination: Destination = .backend, as effect: Releases.Effect? = nil
    ) async throws(Refusal) -> Caller {
        let work = workspaces.take()
        defer { workspaces.put(back: work) }
        do throws(Refusal) {
            if judgement.fresh == nil, judgement.token == nil, judgement.ticket == nil {
                try await prove(request, judgement, from: network, for: destination, as: effect, work)
            }
            return try await admit(request, judgement, from: network, to: destination, work)
        } catch {
            judgement.refusal = error
            throw error
        }
    }

    /// Finds out who says that he calls, for answers to requests that may come from anybody: nothing is refused, and no
    /// replay is looked for.
    nonisolated(nonsending) package func recognise(_ request: Request, _ judgement: Judgement) async {
        let work = workspaces.take()
        defer { workspaces.put(back: work) }
        try? await prove(request, judgement, from: { [] }, for: .ownRoute, as: .reads, work)
        judgement.fresh = nil
    }

    /// The first stage: whose request it is, by its signature. Inlined, as a frame of its own costs each
    /// request.
    @inline(__always)
    nonisolated(nonsending) private func prove(
        _ request: Request, _ judgement: Judgement, from network: () -> [UInt8], for destination: Destination,
        as effect: Releases.Effect?, _ work: WorkspaceLease
    ) async throws(Refusal) {
        let traces = try judgement.look(for: schemes, in: request, keys)
        try authorities.check(request)
        judgement.step = .claim
        if request.names.contains(.countersignTicket) {
            judgement.ticket = try await tickets.prove(
                request, judgement, from: network, for: destination, at: clock.now)
            return
        }
        // Where no scheme has left a trace, a token may be all that the app sends.
        if !traces.areSigned, destination == .backend, let app = try tokens.app(takingTokenOf: request) {
            judgement.token = try await tokens.prove(
                request, to: app, judgement, from: network, as: effect, at: clock.now)
            return
        }
        // Exactly one scheme may claim it; none does from the head where the signature can only be in the body.
        guard var claim = try schemes.claim(in: request, traces: traces, &work.space) else { return }
        judgement.step = .key
        var key = try await keys.key(for: claim)  // unknown ids take the same time
        judgement.note(claim, key)
        if let label = try key.otherLabel(than: claim, in: request) {  // of several signatures, a policy may choose
            claim = try schemes.claim(in: request, labelled: label, claim.scheme, &work.space)
            key = try await keys.key(for: claim, ofAppOf: key)
            judgement.note(claim, key)
        }
        if claim.base == .awaitedBody { return }
        let proof = try verify(
            request, claim: claim, candidate: key, noting: judgement, from: network, at: clock.now, &work.space)
        judgement.step = .freshness
        let fresh = try freshness.check(proof, at: clock.now)
        judgement.step = .release
        judgement.update = try releases.check(
            fresh.release, in: fresh.session, effect ?? (request.isSafe ? .reads : .changes), from: network,
            at: clock.now)
        judgement.fresh = consume fresh
    }

    /// The second stage: whether this request may pass, now that the body is there or streams.
    nonisolated(nonsending) private func admit(
        _ request: Request, _ judgement: Judgement, from network: () -> [UInt8], to destination: Destination,
        _ work: WorkspaceLease
    ) async throws(Refusal) -> Caller {
        guard let fresh = judgement.fresh.take(), let claim = judgement.claim else {
            if let proof = judgement.ticket.take() { return try admit(proof, sending: request, judgement) }
            guard let proof = judgement.token.take() else { throw Refusal(.unsigned) }
            return try await admit(Caller(proof), sending: request, judgement, work)
        }
        judgement.step = .body
        try judgement.lookAgain(for: schemes, in: request)  // no signs of a second scheme
        let proof = try bodyCheck(request, fresh, at: clock.now)
        judgement.step = .replay
        var caller = try await replay.admit(proof)  // one atomic insert, after the signature
        caller.update = judgement.update
        judgement.step = .session
        if destination != .login { try await bearers.identify(&caller, sending: request, claim, work) }
        let route = destination == .backend ? try caller.release.policy.routes.decision(for: request) : nil
        try sessions.check(caller, on: route, at: clock.now)
        judgement.step = .device
        if let route, route.level == .device {
            try await devices.check(
                caller, sending: request, on: route, signed: claim.label, from: network, at: clock.now, work)
        }
        judgement.step = .end
        return caller
    }

    /// The same for a caller whose proof is a token alone, which nothing remembers and no signature goes
    /// along with.
    nonisolated(nonsending) private func admit(
        _ caller: Caller, sending request: Request, _ judgement: Judgement, _ work: WorkspaceLease
    ) async throws(Refusal) -> Caller {
        var caller = caller
        caller.update = judgement.update
        judgement.step = .session
        let route = try caller.release.policy.routes.decision(for: request)
        try sessions.check(caller, on: route, at: clock.now)
        judgement.step = .device
        if route.level == .device {
            try await devices.check(
                caller, sending: request, on: route, signed: Slice.empty, from: { [] }, at: clock.now, work)
        }
        judgement.step = .end
        return caller
    }

    /// The same for a caller whose proof is an upload ticket, which the head was judged by.
    private func admit(
        _ proof: consuming UploadTicketProof, sending request: Request, _ judgement: Judgement
    ) throws(Refusal) -> Caller {
        judgement.step = .body
        if request.isBodyWhole { try proof.body.check(request.body.span) }
        var caller = Caller(proof)
        caller.update = judgement.update
        judgement.step = .end
        return caller
    }

    /// The same for a request whose body is there, or streams.
    nonisolated(nonsending) package func judge(
        _ request: Request, from network: () -> [UInt8] = { [] }, for destination: Destination = .backend,
        as effect: Releases.Effect? = nil
    ) async throws(Refusal) -> Caller {
        let judgement = begin()
        defer { end(judgement) }
        return try await judge(request, judgement, from: network, for: destination, as: effect)
    }

    /// What becomes of a whole request, accepted or not.
    nonisolated(nonsending) package func judgement(
        of request: Request, for destination: Destination = .backend
    ) async -> Judgement {
        let judgement = begin()
        _ = try? await judge(request, judgement, for: destination)
        return judgement
    }

    /// For what is answered without a signature: refuses what was sent to another host.
    package func checkAuthority(of request: Request) throws(Refusal) { try authorities.check(request) }
}
