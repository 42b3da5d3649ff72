import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignSchemes
import CountersignWire

/// Takes a request from the engine through the gate to the upstream.
///
/// The asynchronous steps are not inlined into each other: a connection keeps the memory of the largest
/// frames that it has had, and most requests need few of them.
///
/// One for each loop, and confined to it; the gate, the log and the clock are shared.
final class Gateway: Handler, @unchecked Sendable {
    /// The backend that receives verified requests.
    enum Backend {
        case echo
        case upstream(UpstreamPool)

        /// Nil for the echo.
        var host: String? { if case .upstream(let pool) = self { pool.target.host } else { nil } }
    }

    let gate: Gate
    /// Nil if lookups of releases read the store themselves.
    let releases: ReleaseKeyDirectory?
    private let signing: ResponseSigner
    let backend: Backend
    let routes: RouteTable
    private(set) var decider: DecideEndpoint?
    private(set) var limits: Limits
    private(set) var proxies: TrustedProxies
    private let log: EventLog?
    /// Nil for a server without a console.
    private let refusals: RefusalRecorder?
    let tracer: LoopTracer
    let traffic: TrafficControl
    let clock: any TimeSource
    private(set) var identity: CallerIdentityFields
    let idempotency: IdempotencyCoordinator
    let requestCounter: LoopRequestCounter
    var events: SplitMix64
    private var logClock = LogClock()
    private var line: [UInt8] = []
    /// Events of earlier requests, for the next ones.
    var spareEvents: [ImmediateRequestEvent] = []
    /// The response to a refusal while it is written, and the signature base of its signature.
    let response = ResponseBytes()
    private var signatureBase = StringToSign()
    var legacyScreen: LegacyPathFilter?

    init(
        gate: Gate, releases: ReleaseKeyDirectory? = nil, signing: ResponseSigner, backend: Backend,
        identity: CallerIdentityFields,
        once: IdempotencyCoordinator, routes: RouteTable,
        decider: DecideEndpoint? = nil, limits: Limits, proxies: TrustedProxies = TrustedProxies(),
        tally: LoopRequestCounter,
        log: EventLog?, refusals: RefusalRecorder? = nil, tracer: LoopTracer, traffic: TrafficControl,
        clock: any TimeSource,
        seed: UInt64
    ) {
        self.gate = gate
        self.releases = releases
        self.signing = signing
        self.backend = backend
        self.identity = identity
        self.idempotency = once
        self.routes = routes
        self.decider = decider
        self.limits = limits
        self.proxies = proxies
        self.requestCounter = tally
        self.log = log
        self.refusals = refusals
        self.tracer = tracer
        self.traffic = traffic
        self.clock = clock
        events = SplitMix64(seed: seed)
    }

    /// What a reload replaces. Requests in flight may use the earlier value of one and the later one of
    /// another.
    struct Replacement {
        var limits: Limits
        var proxies: TrustedProxies
        var identity: CallerIdentityFields
        var rules: HeadRules
        var traces: TraceRules
        var traffic: TrafficSettings
    }

    /// Called on the loop.
    func replace(by replacement: Replacement) {
        limits = replacement.limits
        proxies = replacement.proxies
        identity = replacement.identity
        tracer.rules = replacement.traces
        traffic.settings = replacement.traffic
        decider = decider?.replacing(
            proxies: replacement.proxies, limits: replacement.limits, rules: replacement.rules)
    }

    func handle(_ exchange: any Exchange) async {
        // One copy for all steps; it includes the body once that has arrived.
        var request = exchange.request
        let judgement = beginJudgement(of: request, on: exchange)
        let event = RequestEvent(id: EventID(&events), began: exchange.loop.jobBegan)
        do {
            try await releases?.loadIfChanged()
            if let decider, decider.isCalled(by: request, from: exchange.peer) {
                await decide(
                    with: decider, exchange: exchange, request: request, judgement: judgement, event: event)
                return end(judgement, event: event, of: exchange)
            }
            try screen(exchange, event: event)
            if let grant = try gate.preflightGrant(for: request) {
                await exchange.respond(CrossOriginResponse.preflight(grant, for: request))
                return end(judgement, event: event, of: exchange)
            }
            switch routes.find(request) {
            case .elsewhere:
                try await serveBackendRequest(
                    exchange, request: &request, judgement: judgement, event: event)
            case .route(let route, let parameter):
                try await serve(
                    route, parameter: parameter, exchange: exchange, request: &request, judgement: judgement,
                    event: event)
            case .otherMethod(let allowed): await exchange.respond(.otherMethod(allowed: allowed))
            case .nothing: await exchange.respond(.notFound)
            }
        } catch {
            event.refusal = error
            await answer(error, on: exchange, judgement: judgement, event: event)
        }
        end(judgement, event: event, of: exchange)
    }

    /// Counts the request as one in flight until ``end(_:event:of:)``, and returns its judgement. If a
    /// trusted proxy names the client, the request is attributed to that one.
    func beginJudgement(of request: Request, on exchange: any Exchange) -> Judgement {
        requestCounter.begin()
        let judgement = gate.beginJudgement()
        if proxies.areNamed, !exchange.isClientUnnamed,
            let client = proxies.client(of: request, from: exchange.peer)
        {
            exchange.attribute(to: client.address ?? .unknown)
            exchange.attachment = client
            judgement.isProxied = true
        }
        return judgement
    }

    /// Ends a request: its response was sent, or cannot be.
    func end(_ judgement: Judgement, event: RequestEvent, of exchange: any Exchange) {
        // A refusal is counted as it is written.
        if event.refusal == nil { countEnd(of: event, on: exchange) }
        didEnd(event, of: exchange, after: judgement)
        event.caller = nil
        gate.endJudgement(judgement)
        requestCounter.end()
    }

    /// Counts the durations, and writes the event.
    private func didEnd(_ event: RequestEvent, of exchange: any Exchange, after judgement: Judgement) {
        event.end()
        event.counted?.record(
            nanoseconds: event.nanoseconds, upstreamNanoseconds: exchange.upstreamNanoseconds)
        if let operation = event.operation {
            requestCounter.count(operation, refusal: event.refusal?.code, failure: event.failure)
        }
        if tracer.isActive {
            tracer.end(
                event, on: exchange, after: judgement, client: client(of: exchange), backend: backend.host)
        }
        record(event, of: exchange, after: judgement)
    }

    func refuse(_ refusal: Refusal, on exchange: any Exchange) async {
        // What a proxy said of the previous request does not apply to this one.
        exchange.attachment = nil
        let event = RequestEvent(id: EventID(&events), began: exchange.loop.jobBegan)
        event.refusal = refusal
        let judgement = gate.beginJudgement()
        await answer(refusal, on: exchange, judgement: judgement, event: event)
        didEnd(event, of: exchange, after: judgement)
        gate.endJudgement(judgement)
    }

    // MARK: Routing

    /// Sends the request to the legacy login routes if it calls one of them; otherwise to the backend if the
    /// gate admits it.
    private func serveBackendRequest(
        _ exchange: any Exchange, request: inout Request, judgement: Judgement, event: RequestEvent
    ) async throws(Refusal) {
        try announceBody(of: exchange, request: &request)
        if let legacy = routes.legacy, try legacy.mayBeCalled(by: request, keeping: &legacyScreen) {
            if request.announcesBody(upTo: LegacyRoutes.mostBodyBytes) {
                try gate.checkHost(of: request)
                try await readBody(of: exchange, atMost: LegacyRoutes.mostBodyBytes, into: &request)
            }
            try await gate.identify(request, recordingIn: judgement)
            if let found = try legacy.find(request, judgement: judgement) {
                return try await serveLegacy(
                    found, routes: legacy, exchange: exchange, request: &request, judgement: judgement,
                    event: event)
            }
        }
        try await finishBackendRequest(
            exchange, request: &request, judgement: judgement, event: event, from: .notBegun)
    }

    /// How far the admission of a request for the backend has come.
    enum Admission {
        case notBegun
        /// It waits for the request's body or for the replay guard.
        case waiting
        /// It waits for a lookup in the store, and then begins again.
        case lookingUp(DeferredLookup)
        case admitted(Caller)
    }

    /// Admits the request, and forwards it.
    @inline(never)
    func finishBackendRequest(
        _ exchange: any Exchange, request: inout Request, judgement: Judgement, event: RequestEvent,
        from admission: Admission
    ) async throws(Refusal) {
        let caller: Caller
        do throws(Refusal) {
            switch admission {
            case .notBegun:
                caller = try await admit(exchange, request: &request, judgement: judgement, for: .backend)
            case .waiting:
                caller = try await admitAfterWaiting(
                    exchange, request: &request, judgement: judgement, for: .backend, as: nil)
            case .lookingUp(let lookup):
                try await gate.finish(lookup, for: judgement)
                caller = try await admit(exchange, request: &request, judgement: judgement, for: .backend)
            case .admitted(let admitted): caller = admitted
            }
        } catch {
            guard let passage = try gate.passThrough(for: request, judgement: judgement, after: error) else {
                throw error
            }
            return try await forwardUnproven(
                exchange, request: &request, by: passage, judgement: judgement, event: event)
        }
        event.caller = caller
        if let rules = caller.release.traffic {
            try checkTraffic(by: rules, of: request, from: caller, over: exchange, event: event)
        }
        try Gateway.checkForwardable(request, from: caller)
        if let ticket = caller.withheld?.ticket {
            return try await forwardUpload(
                by: ticket, exchange: exchange, request: request, from: caller, judgement: judgement,
                event: event)
        }
        try await forward(exchange, request: request, from: caller, judgement: judgement, event: event)
    }

    static func tooLargeForEcho(_ limits: Limits) -> Refusal {
        Refusal(
            .tooLarge, detail: "the built-in echo backend takes bodies up to \(limits.heldBodyBytes) bytes")
    }

    /// Calls one of the authority's own routes.
    @inline(never)
    private func serve(
        _ route: Route, parameter: String, exchange: any Exchange, request: inout Request,
        judgement: Judgement, event: RequestEvent
    ) async throws(Refusal) {
        try announceBody(of: exchange, request: &request)
        let isAwaited = request.bodyState != .whole
        if isAwaited, !request.announcesBody(upTo: Route.mostBodyBytes) {
            throw Refusal(
                .tooLarge, detail: "a body of this route is limited to \(Route.mostBodyBytes) bytes")
        }
        var caller: Caller?
        if route.admission == .anyone {
            // None of these routes reads a body: waiting for one would let any caller hold a connection.
            try await gate.identify(request, recordingIn: judgement)
            if let grant = try gate.crossOriginGrant(for: request) {
                event.trafficFields = CrossOriginResponse.fields(of: grant)
            }
        } else {
            let judged = try await admit(
                exchange, request: &request, judgement: judgement,
                for: route.admission == .endingSession ? .logOut : .ownRoute, as: route.effect)
            event.caller = judged
            if let app = judged.release.traffic {
                event.trafficFields = CrossOriginResponse.fields(for: request, by: app.rules.crossOrigin)
                try traffic.admit(client(of: exchange), by: app.rules)
            }
            event.operation = route.operation
            caller = judged
            try Gateway.checkScheme(judged.scheme)
            if route.admission != .release, judged.session == nil {
                throw Refusal(.sessionRequired, detail: "this route needs a session")
            }
        }
        if route.operation != nil { try checkClock() }
        let call = RouteCall(
            request: request, caller: caller, address: ClientAddress(client(of: exchange)), event: event.id,
            parameter: parameter, now: clock.estimate
        )
        let answered: RouteResult
        do {
            answered = try await route.answer(call)
        } catch {
            throw clock.confirmed(error)
        }
        var plain = answered.answer.addingUpdateNotice(for: caller)
        plain.fields += event.trafficFields
        if let signer = answered.signer {
            return await exchange.respond(
                signing.signed(
                    plain, to: request, by: signer, binding: answered.binding, at: clock.estimate))
        }
        await exchange.respond(signed(plain, to: exchange, judgement: judgement))
    }

    /// Refuses to begin or renew a session by a clock that another one contradicts: its times would be wrong
    /// for the whole session.
    func checkClock() throws(Refusal) {
        guard clock.isInDoubt else { return }
        throw Refusal(.unavailable, detail: "the clock is not trusted", retryAfter: 60)
    }

    // MARK: Callers

    /// The caller, judged from the head first. Reads the body into `request` only if the caller may still
    /// pass.
    func admit(
        _ exchange: any Exchange, request: inout Request, judgement: Judgement,
        for destination: RequestDestination,
        as effect: ReleaseCheck.Effect? = nil
    ) async throws(Refusal) -> Caller {
        let ready = try await gate.waitingForLookups(of: judgement) { () throws(Refusal) in
            try admitIfReady(
                exchange, request: &request, judgement: judgement, for: destination, as: effect)
        }
        if let ready { return ready }
        return try await admitAfterWaiting(
            exchange, request: &request, judgement: judgement, for: destination, as: effect)
    }

    /// The same, as far as nothing has to wait; nil if the body has not arrived or the replay guard must
    /// wait. Never inlined: the values of a judgement would take several kilobytes of every caller's
    /// asynchronous frame, which lives as long as its connection.
    @inline(never)
    func admitIfReady(
        _ exchange: any Exchange, request: inout Request, judgement: Judgement,
        for destination: RequestDestination, as effect: ReleaseCheck.Effect?
    ) throws(Refusal) -> Caller? {
        // Under overload, too, the gate judges the caller before it stores anything about the request.
        if request.bodyState == .awaited || exchange.isOverloaded {
            try gate.judgeHead(
                of: request, recordingIn: judgement, from: { network(of: exchange) }, for: destination,
                as: effect)
            if destination == .ownRoute || destination == .logOut {
                guard let claim = judgement.claim else {
                    throw Refusal(.unsigned, detail: "no signature in the head")
                }
                try Gateway.checkScheme(claim.scheme)
            }
            if let proof = judgement.proof { exchange.recordProof(proof) }
            if destination == .backend, let rules = judgement.release?.traffic {
                try traffic.checkAnnouncedSize(of: request, by: rules)
            }
            try exchange.checkOverload()
            if request.bodyState == .awaited {
                guard try exchange.readArrivedBody(atMost: limits.heldBodyBytes) else { return nil }
                takeBody(of: exchange, into: &request)
            }
        }
        let caller = try gate.judgeIfReady(
            request, recordingIn: judgement, from: { network(of: exchange) }, for: destination, as: effect)
        guard let caller else { return nil }
        try recordProof(of: caller, on: exchange)
        return caller
    }

    /// Goes on where ``admitIfReady(_:request:judgement:for:as:)`` returned nil. Seldom called: not inlined,
    /// so that its frame is made when it is.
    @inline(never)
    private func admitAfterWaiting(
        _ exchange: any Exchange, request: inout Request, judgement: Judgement,
        for destination: RequestDestination, as effect: ReleaseCheck.Effect?
    ) async throws(Refusal) -> Caller {
        let caller: Caller
        if request.bodyState == .awaited {
            try await readBody(of: exchange, atMost: limits.heldBodyBytes, into: &request)
            try await releases?.loadIfChanged()
            caller = try await gate.judge(
                request, recordingIn: judgement, from: { network(of: exchange) }, for: destination,
                as: effect)
        } else {
            caller = try await gate.judgeAfterWaiting(
                request, recordingIn: judgement, from: { network(of: exchange) }, for: destination)
        }
        try recordProof(of: caller, on: exchange)
        return caller
    }

    private func recordProof(of caller: Caller, on exchange: any Exchange) throws(Refusal) {
        exchange.recordProof(caller.proof)
        try exchange.checkOverload()
    }

    /// The other schemes leave part of a request unsigned, and have no place for a signed answer.
    private static func checkScheme(_ scheme: SchemeName) throws(Refusal) {
        guard scheme != .messageSignatures else { return }
        throw Refusal(.schemeNotAllowed, detail: "the authority's own routes are for message-signatures")
    }

    // MARK: Origin

    /// The client's address; where a trusted proxy names it, as read at the beginning of the exchange.
    func client(of exchange: any Exchange) -> NetworkAddress? {
        if proxies.areNamed, let client = exchange.attachment as? ProxiedClient { return client.address }
        return NetworkAddress(withPort: exchange.peer)
    }

    /// Four bytes or eight; empty if the address is unknown.
    func network(of exchange: any Exchange) -> [UInt8] {
        client(of: exchange).map { ClientAddress($0).bytes } ?? []
    }

    // MARK: Steps

    /// Sets the body's state: a body whose stated length is over the limit for held bodies streams; any
    /// other body is held once it is read.
    private func announceBody(of exchange: any Exchange, request: inout Request) throws(Refusal) {
        let state = try bodyState(of: request.framing)
        guard state != .whole else { return }
        request.bodyState = state
        exchange.request.bodyState = state
    }

    func bodyState(of framing: Request.Framing) throws(Refusal) -> Request.BodyState {
        switch framing {
        case .none, .length(0): return .whole
        case .length(let length) where length > limits.heldBodyBytes:
            guard length <= limits.bodyBytes else {
                throw Refusal(.tooLarge, detail: "a body is limited to \(limits.bodyBytes) bytes")
            }
            return .streaming
        case .length, .chunked: return .awaited
        }
    }

    func readBody(
        of exchange: any Exchange, atMost limit: Int, into request: inout Request
    ) async throws(Refusal) {
        try await exchange.readWholeBody(atMost: limit)
        takeBody(of: exchange, into: &request)
    }

    private func takeBody(of exchange: any Exchange, into request: inout Request) {
        exchange.request.bodyState = .whole
        request = exchange.request
    }

    @inline(never)
    private func forward(
        _ exchange: any Exchange, request: Request, from caller: Caller, judgement: Judgement,
        event: RequestEvent
    ) async throws(Refusal) {
        if let keyed = try keyedRequest(of: request, from: caller, over: exchange) {
            event.trafficFields.append(idempotency.retention)
            return try await forwardOnce(
                keyed, exchange: exchange, request: request, from: caller, judgement: judgement, event: event)
        }
        try await send(
            exchange, request: request, from: caller, judgement: judgement, event: event, observer: nil)
    }

    func keyedRequest(
        of request: Request, from caller: Caller, over exchange: any Exchange
    ) throws(Refusal) -> IdempotentRequest? {
        try IdempotencyKeyParser.read(
            request, from: caller,
            calling: {
                // The connection knows its peer's address without parsing its text.
                ClientAddress(proxies.areNamed ? client(of: exchange) : exchange.source.address)
            }, at: clock.estimate)
    }

    /// Sends the request to the backend whether or not an earlier copy was sent. `observer` sees the answer.
    @inline(never)
    func send(
        _ exchange: any Exchange, request: Request, from caller: Caller, judgement: Judgement,
        event: RequestEvent, observer: (any UpstreamResponseObserver)?
    ) async throws(Refusal) {
        var forwarding = try forwarding(
            of: request, from: caller, judgement: judgement, over: exchange, event: event)
        forwarding.observer = observer
        switch backend {
        case .echo:
            guard request.isBodyWhole else { throw Gateway.tooLargeForEcho(limits) }
            let answer = EchoBackend.answer(request, forwarding: forwarding)
            observer?.didAnswer(answer)
            var response = answer.addingUpdateNotice(for: caller)
            response.fields += event.trafficFields
            await exchange.respond(signed(response, to: exchange, judgement: judgement))
        case .upstream(let pool):
            if request.isBodyWhole { return try await exchange.forward(forwarding, to: pool) }
            // Also applies where the route observes: the head has gone on with an identity, which must not
            // vouch for another body.
            forwarding.inspector = StreamedBodyCheck(caller.body)
            try await exchange.forward(forwarding, to: pool)
        }
    }

    func forwarding(
        of request: Request, from caller: Caller, judgement: Judgement, over exchange: any Exchange,
        event: RequestEvent
    ) throws(Refusal) -> ForwardedRequest {
        var forwarding = ForwardedRequest(
            fields: identity.forwardedFields(of: request, caller: caller),
            added: try identity.lines(
                for: caller, sending: request,
                leaving: judgement.claim?.unsignedParts ?? [],
                over: exchange,
                event: event.id, at: clock.estimate))
        forwarding.addedToAnswer = UpdateField.line(for: caller)
        Gateway.add(event.trafficFields, to: &forwarding, by: caller.release.traffic)
        forwarding.caller = caller.session.map { .account($0.account.number) }
        if tracer.isActive {
            let party = VerifiedParty(caller.proof, from: exchange.source.address)
            tracer.forward(request, of: event, by: party, as: &forwarding)
        }
        return forwarding
    }

    /// A signed field must arrive; `Connection` would have it removed.
    static func checkForwardable(_ request: Request, from caller: Caller) throws(Refusal) {
        if case .only(let signed) = caller.coveredFields, request.hopByHopFields.intersects(signed) {
            throw Refusal(.malformed, detail: "the Connection field names a field that is signed")
        }
    }

    func answer(
        _ refusal: Refusal, on exchange: any Exchange, judgement: Judgement, event: RequestEvent
    ) async {
        let request = exchange.request
        // Bytes that could not be parsed as a request speak no dialect and name no app.
        let isRequest = !request.method.isEmpty
        let disclosure =
            isRequest ? disclosure(of: refusal, for: request, on: exchange, after: judgement) : .code
        writeResponse(
            to: refusal, disclosing: disclosure, of: request, on: exchange, judgement: judgement,
            event: event)
        // Other requests use the bytes while this one waits.
        if !exchange.respondAtOnce(response) { await exchange.respond(ServerResponse(response)) }
    }

    /// Counts a refusal, and writes the response to it.
    func writeResponse(
        to refusal: Refusal, disclosing disclosure: RefusalResponse.Disclosure, of request: Request,
        on exchange: any Exchange, judgement: Judgement, event: RequestEvent
    ) {
        count(refusal, of: event, named: judgement.release, on: exchange)
        if judgement.failedVerification,
            !exchange.source.take(.failedVerification, now: exchange.loop.seconds)
        {
            exchange.closeAfterAnswer()
        }
        let now = refusal.decidingTime ?? clock.estimate
        if tracer.isActive {
            tracer.begin(event, request: request, by: event.verifiedParty(of: exchange, after: judgement))
        }
        RefusalResponse.write(
            refusal, dialect: judgement.dialect, disclosure: disclosure,
            text: text(for: refusal, answering: request, after: judgement),
            event: event.id, trace: tracer.traceID(of: event, request: request), now: now, to: response)
        if event.trafficFields.isEmpty, let rules = judgement.release?.traffic {
            event.trafficFields = CrossOriginResponse.fields(for: request, by: rules.rules.crossOrigin)
        }
        for field in event.trafficFields {
            response.fields.append("\(field.name): \(field.value)\r\n")
        }
        var covered: [Draft.Field] = []
        if let update = event.caller?.update {
            let line = UpdateField.line(for: update)
            response.fields.append(line.span)
            covered = [Draft.Field(name: UpdateNotice.fieldName, value: update.fieldValue)]
        }
        guard judgement.isOfMessageSignatures else { return }
        ResponseSigner.appendSignatureRequest(
            to: &response.fields, for: refusal, of: request, judgement: judgement, event: event.id)
        guard maySign(for: exchange, judgement: judgement) else { return }
        signing.sign(
            response, covering: covered, answering: request, by: judgement.responseCredentials, at: now,
            writing: &signatureBase)
    }

    /// The refusal text of the app that the request names, even if the claim is not proved: every copy of the
    /// app contains these texts.
    private func text(
        for refusal: Refusal, answering request: Request, after judgement: Judgement
    ) -> RefusalText? {
        guard let app = judgement.release?.app ?? judgement.session?.app else { return nil }
        return text(for: refusal, answering: request, of: app, release: judgement.release?.id)
    }

    func text(
        for refusal: Refusal, answering request: Request, of app: String, release: KeyID? = nil
    ) -> RefusalText? {
        routes.texts?.text(for: refusal.code, of: app, release: release) {
            guard let field = request.value(of: "accept-language") else { return AcceptedLanguages() }
            return AcceptedLanguages(request.head.span.extracting(field.range))
        }
    }

    /// What the caller is told besides the code. The loop computes explanations for any caller that names the
    /// release, so each has a limit and each address has a budget.
    private func disclosure(
        of refusal: Refusal, for request: Request, on exchange: any Exchange, after judgement: Judgement
    ) -> RefusalResponse.Disclosure {
        if let release = judgement.tokenRelease { return Gateway.disclosure(toTokenOf: release) }
        guard let release = gate.releaseToExplain(for: request, judgement: judgement) else {
            return .code
        }
        guard exchange.source.take(.explanation, now: exchange.loop.seconds) else {
            // For a key id that only looks like one of this deployment, reveal nothing, as below.
            return refusal.code == .unknownKey ? .code : .overBudget
        }
        let explanation = gate.explanation(
            of: refusal, for: request, judgement: judgement, naming: release, within: .response)
        return explanation.map { .explanation($0) } ?? .code
    }

    /// For a token alone there is nothing to explain but the reason.
    static func disclosure(toTokenOf release: AppRelease) -> RefusalResponse.Disclosure {
        release.policy.detail == .exact ? .reason : .code
    }

    /// Signs the answer if the caller speaks message-signatures; other schemes have no place for a signature.
    func signed(_ answer: ServerResponse, to exchange: any Exchange, judgement: Judgement) -> ServerResponse {
        guard judgement.isOfMessageSignatures, maySign(for: exchange, judgement: judgement) else {
            return answer
        }
        return signing.signed(
            answer, to: exchange.request, by: judgement.responseCredentials, at: clock.estimate)
    }

    /// Whether the answer to a caller of message-signatures is signed. Signed answers to callers that have
    /// proved nothing have a budget, since a copied request proves nothing either. Beyond the budget an
    /// answer goes out unsigned, and a client does not trust it.
    private func maySign(for exchange: any Exchange, judgement: Judgement) -> Bool {
        guard judgement.isSigned else { return false }
        let isCheap = judgement.responseCredentials != nil || judgement.step == .end
        return isCheap || exchange.source.take(.signedRefusal, now: exchange.loop.seconds)
    }

    /// Counts a refused request. One that was admitted, or passed without proof, and then failed at the
    /// backend or the client counts by that failure. `named` is the release that the request claims.
    func count(
        _ refusal: Refusal, of event: RequestEvent, named: AppRelease?, on exchange: any Exchange
    ) {
        requestCounter.respond(with: refusal.code)
        if event.isAdmitted, let failure = exchange.deliveryFailure { return count(failure, of: event) }
        let party = event.party ?? named.map { .release($0) } ?? .unknown
        event.counted = requestCounter.count(.refused(refusal.code), of: party)
    }

    private func count(_ failure: DeliveryFailure, of event: RequestEvent) {
        event.failure = failure
        // A request that passed without a proof has only claimed its release.
        let party = event.caller == nil ? event.passage.map { .app($0.app) } ?? event.party : event.party
        if let party { event.counted = requestCounter.count(.failed(failure), of: party) }
    }

    /// Counts a request that was not refused, by how its response ended. The authority's open routes are not
    /// counted.
    private func countEnd(of event: RequestEvent, on exchange: any Exchange) {
        guard let party = event.party else { return }
        let status = Gateway.backendStatus(of: event, on: exchange)
        if let status {
            requestCounter.count(event.isRepeated ? .repeated(status) : .answered(status), of: party)
        }
        let failure = exchange.deliveryFailure ?? (status == .serverError ? .upstreamError : nil)
        if let failure { return count(failure, of: event) }
        event.counted = requestCounter.count(event.deliveredOutcome, of: party)
    }

    /// The class of the backend's status, whether its response is new or repeated; nil if the response is
    /// not the backend's.
    private static func backendStatus(of event: RequestEvent, on exchange: any Exchange) -> StatusClass? {
        guard exchange.upstreamNanoseconds != nil || event.isRepeated, let status = exchange.answeredStatus
        else { return nil }
        return StatusClass(status: status)
    }

    /// The client that a trusted proxy names, as text.
    private func proxiedClient(of exchange: any Exchange) -> String? {
        proxies.areNamed ? (exchange.attachment as? ProxiedClient)?.text : nil
    }

    private func record(_ event: RequestEvent, of exchange: any Exchange, after judgement: Judgement) {
        guard let log else { return }
        let (subject, now) = (event.subject(of: exchange), exchange.loop.seconds)
        let proof = event.proof(after: judgement)
        let isAdmitted =
            if let proof { log.admits(subject, of: proof, now: now) } else { log.admits(subject, now: now) }
        guard isAdmitted else { return }
        line = event.line(
            for: exchange, from: proxiedClient(of: exchange), after: judgement,
            tracer: tracer, clock: &logClock, reusing: line)
        let isFailed = event.refusal != nil || event.failure != nil
        log.write(
            line, urgency: isFailed ? .now : .soon, admittedBy: proof == nil ? .unproven : .verified)
        if isFailed, let refusals { refusals.record(event, of: exchange, after: judgement, line: line) }
    }
}

extension Request {
    /// Whether a body is announced that may be at most `most` bytes long. The length of a chunked body is
    /// unknown.
    fileprivate func announcesBody(upTo most: Int) -> Bool {
        switch framing {
        case .none, .length(0): false
        case .length(let length): length <= most
        case .chunked: true
        }
    }
}

/// Checks a streamed body against its signature, for the engine.
private final class StreamedBodyCheck: BodyInspector {
    private var digest: BodyDigest?

    init(_ expectation: BodyExpectation) { digest = BodyDigest(expectation) }

    func inspect(_ bytes: Span<UInt8>) { digest?.update(bytes) }

    func finish() throws(Refusal) {
        guard let digest = digest.take() else { return }
        try digest.finish()
    }
}

extension Gateway {
    /// Forwards a request without a valid proof to the backend, if the app's rules allow it.
    @inline(never)
    func forwardUnproven(
        _ exchange: any Exchange, request: inout Request, by passage: PassThrough, judgement: Judgement,
        event: RequestEvent
    ) async throws(Refusal) {
        try exchange.checkOverload()
        if request.bodyState == .awaited {
            if case (.upstream, .length(let length)) = (backend, request.framing), length <= limits.bodyBytes
            {
                request.bodyState = .streaming
                exchange.request.bodyState = .streaming
            } else {
                try await readBody(of: exchange, atMost: limits.heldBodyBytes, into: &request)
            }
        }
        event.passage = passage
        if let rules = passage.traffic {
            try checkTraffic(by: rules, of: request, from: nil, over: exchange, event: event)
        }
        var forwarding = ForwardedRequest(
            fields: identity.forwardedFields(ofUnproven: request),
            added: identity.lines(for: passage, sending: request, over: exchange, event: event.id))
        if let rules = passage.traffic { Gateway.add(event.trafficFields, to: &forwarding, by: rules) }
        if tracer.isActive {
            tracer.forward(
                request, of: event, by: event.verifiedParty(of: exchange, after: judgement), as: &forwarding)
        }
        switch backend {
        case .echo:
            guard request.isBodyWhole else { throw Gateway.tooLargeForEcho(limits) }
            await exchange.respond(EchoBackend.answer(request, forwarding: forwarding))
        case .upstream(let pool): try await exchange.forward(forwarding, to: pool)
        }
    }
}
