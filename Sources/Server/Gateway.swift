import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignSchemes
import CountersignWire

/// The way of a request, from the engine to the gate and on to the upstream.
///
/// One for each loop, and confined to it; the gate, the log and the clock are shared.
final class Gateway: Handler, @unchecked Sendable {
    /// Where verified requests go.
    enum Backend {
        case echo
        case upstream(UpstreamPool)
    }

    /// Of the loop's time, for the search of a mistake; the usual ones are found within it.
    private static let explanationNanoseconds: Int64 = 5_000_000

    let gate: Gate
    private let signing: AnswerSigning
    let backend: Backend
    let routes: RouteTable
    private let decider: Decider?
    let limits: Limits
    let proxies: TrustedProxies
    private let log: EventLog?
    let clock: any TimeSource
    let identity: Identity
    let once: Once
    let tally: Tally
    private var events: EventGenerator
    private var logClock = LogClock()
    private var line: [UInt8] = []
    var legacyScreen: LegacyScreen?

    init(
        gate: Gate, signing: AnswerSigning, backend: Backend, identity: Identity, once: Once, routes: RouteTable,
        decider: Decider? = nil, limits: Limits, proxies: TrustedProxies = TrustedProxies(), tally: Tally,
        log: EventLog?, clock: any TimeSource,
        seed: UInt64
    ) {
        self.gate = gate
        self.signing = signing
        self.backend = backend
        self.identity = identity
        self.once = once
        self.routes = routes
        self.decider = decider
        self.limits = limits
        self.proxies = proxies
        self.tally = tally
        self.log = log
        self.clock = clock
        events = EventGenerator(seed: seed)
    }

    func handle(_ exchange: any Exchange) async {
        // One copy for all; with the body, once that has come.
        var request = exchange.request
        let judgement = gate.begin()
        if proxies.areNamed, !exchange.isClientUnnamed,
            let client = proxies.client(of: request, from: exchange.peer)
        {
            exchange.attribute(to: client.address ?? .unknown)
            exchange.attachment = client
            judgement.isProxied = true
        }
        var event = RequestEvent(id: EventID(&events))
        do throws(Refusal) {
            if let decider, decider.isCalled(by: request, from: exchange.peer) {
                await decide(decider, exchange, request, judgement, &event)
                gate.end(judgement)
                return record(event, exchange)
            }
            switch routes.find(request) {
            case .elsewhere: try await pass(exchange, &request, judgement, &event)
            case .route(let route, let parameter):
                try await serve(route, parameter, exchange, &request, judgement, &event)
            case .otherMethod(let allowed): await exchange.respond(.otherMethod(allowed: allowed))
            case .nothing: await exchange.respond(.notFound)
            }
        } catch {
            event.refusal = error
            await answer(error, exchange, judgement, event)
        }
        gate.end(judgement)
        record(event, exchange)
    }

    func refuse(_ refusal: Refusal, _ exchange: any Exchange) async {
        // What a proxy said of the request before is not true of this one.
        exchange.attachment = nil
        var event = RequestEvent(id: EventID(&events))
        event.refusal = refusal
        let judgement = gate.begin()
        await answer(refusal, exchange, judgement, event)
        gate.end(judgement)
        record(event, exchange)
    }

    // MARK: Ways

    /// To where old clients sign in, if that is meant; else to the backend, if the gate lets it.
    private func pass(
        _ exchange: any Exchange, _ request: inout Request, _ judgement: Judgement, _ event: inout RequestEvent
    ) async throws(Refusal) {
        try announceBody(of: exchange, &request)
        if let legacy = routes.legacy, try legacy.mayBeCalled(by: request, keeping: &legacyScreen) {
            if request.announcesBody(upTo: LegacyRoutes.mostBodyBytes) {
                try gate.checkAuthority(of: request)
                try await readBody(of: exchange, atMost: LegacyRoutes.mostBodyBytes, into: &request)
            }
            await gate.recognise(request, judgement)
            if let found = try legacy.find(request, judgement) {
                return try await serve(found, legacy, exchange, &request, judgement, &event)
            }
        }
        let caller: Caller
        do throws(Refusal) {
            caller = try await admit(exchange, &request, judgement, for: .backend)
        } catch {
            guard let passage = try gate.passage(of: request, judgement, after: error) else { throw error }
            return try await passOn(exchange, &request, by: passage, &event)
        }
        event.caller = caller
        try Gateway.checkForwardable(request, caller)
        // Of a body that streams, the last piece decides.
        if let ticket = caller.withheld?.ticket {
            return try await passUpload(by: ticket, exchange, request, from: caller, judgement, event.id)
        }
        if request.isBodyWhole { tally.accept(caller.release, under: caller.edition) }
        try await passOn(exchange, request, from: caller, judgement, event.id)
        if !request.isBodyWhole { tally.accept(caller.release, under: caller.edition) }
    }

    static func tooLargeForEcho(_ limits: Limits) -> Refusal {
        Refusal(.tooLarge, "the built-in echo backend takes bodies up to \(limits.heldBodyBytes) bytes")
    }

    /// To one of our own routes.
    private func serve(
        _ route: Route, _ parameter: String, _ exchange: any Exchange, _ request: inout Request,
        _ judgement: Judgement, _ event: inout RequestEvent
    ) async throws(Refusal) {
        try announceBody(of: exchange, &request)
        let isAwaited = request.bodyState != .whole
        if isAwaited, !request.announcesBody(upTo: Route.mostBodyBytes) {
            throw Refusal(.tooLarge, "a body of this route is limited to \(Route.mostBodyBytes) bytes")
        }
        var caller: Caller?
        if route.admission == .anyone {
            // None of these routes reads a body: waiting for one would let anybody hold a connection.
            await gate.recognise(request, judgement)
        } else {
            let judged = try await admit(exchange, &request, judgement, for: .ownRoute, as: route.effect)
            event.caller = judged
            tally.accept(judged.release, under: judged.edition)
            caller = judged
            try Gateway.checkScheme(judged.scheme)
            if route.admission == .session, judged.session == nil {
                throw Refusal(.sessionEnded, "this route needs a session")
            }
        }
        let call = RouteCall(
            request: request, caller: caller, address: ClientAddress(client(of: exchange)), event: event.id,
            parameter: parameter, now: clock.now
        )
        let answered = try await route.answer(call)
        let plain = answered.answer.telling(caller)
        if let signer = answered.signer {
            return await exchange.respond(
                signing.signed(
                    plain, to: request, by: signer, binding: answered.binding, at: clock.now))
        }
        await exchange.respond(signed(plain, to: exchange, judgement))
    }

    // MARK: Who calls

    /// The caller, judged from the head first. The body is read into `request`, and only for one that may still pass.
    func admit(
        _ exchange: any Exchange, _ request: inout Request, _ judgement: Judgement, for destination: Destination,
        as effect: Releases.Effect? = nil
    ) async throws(Refusal) -> Caller {
        // Under overload, too, what the caller has proved is asked before anything is remembered of the request.
        if request.bodyState == .awaited || exchange.isOverloaded {
            try await gate.judgeHead(
                of: request, judgement, from: { network(of: exchange) }, for: destination, as: effect)
            if destination == .ownRoute {
                guard let claim = judgement.claim else { throw Refusal(.unsigned, "no signature in the head") }
                try Gateway.checkScheme(claim.scheme)
            }
            if let proof = judgement.proof { exchange.recordProof(proof) }
            try exchange.checkOverload()
            if request.bodyState == .awaited {
                try await readBody(of: exchange, atMost: limits.heldBodyBytes, into: &request)
            }
        }
        let caller = try await gate.judge(
            request, judgement, from: { network(of: exchange) }, for: destination, as: effect)
        exchange.recordProof(caller.proof)
        try exchange.checkOverload()
        return caller
    }

    /// The other schemes leave something of a request unsigned, and have no place for a signed answer.
    private static func checkScheme(_ scheme: SchemeName) throws(Refusal) {
        guard scheme != .messageSignatures else { return }
        throw Refusal(.schemeNotAllowed, "the authority's own routes are for message-signatures")
    }

    // MARK: Where from

    /// What was found at the beginning of the exchange, where a trusted proxy names the client.
    func client(of exchange: any Exchange) -> NetworkAddress? {
        if proxies.areNamed, let client = exchange.attachment as? ProxiedClient { return client.address }
        return NetworkAddress(withPort: exchange.peer)
    }

    /// Four bytes or eight, and none where that cannot be told.
    func network(of exchange: any Exchange) -> [UInt8] {
        client(of: exchange).map { ClientAddress($0).bytes } ?? []
    }

    // MARK: Steps

    /// Says of a body that none of it was read yet; one that is too large to be held must say its length, and streams.
    private func announceBody(of exchange: any Exchange, _ request: inout Request) throws(Refusal) {
        switch request.framing {
        case .none, .length(0): return
        case .length(let length) where length > limits.heldBodyBytes:
            guard length <= limits.bodyBytes else {
                throw Refusal(.tooLarge, "a body is limited to \(limits.bodyBytes) bytes")
            }
            request.bodyState = .streaming
        case .length, .chunked: request.bodyState = .awaited
        }
        exchange.request.bodyState = request.bodyState
    }

    func readBody(
        of exchange: any Exchange, atMost limit: Int, into request: inout Request
    ) async throws(Refusal) {
        try await exchange.readWholeBody(atMost: limit)
        exchange.request.bodyState = .whole
        request = exchange.request
    }

    private func passOn(
        _ exchange: any Exchange, _ request: Request, from caller: Caller, _ judgement: Judgement, _ event: EventID
    ) async throws(Refusal) {
        #if SABOTAGE
            if Sabotage.isOn(.onceForgotten) {
                return try await send(exchange, request, from: caller, judgement, event, nil)
            }
        #endif
        let keyed = try KeyedRequest.read(
            request, from: caller, calling: { ClientAddress(client(of: exchange)) }, at: clock.now)
        if let keyed {
            return try await passOnce(keyed, exchange, request, from: caller, judgement, event)
        }
        try await send(exchange, request, from: caller, judgement, event, nil)
    }

    /// To the backend, whatever was sent before. `observer` sees the answer.
    func send(
        _ exchange: any Exchange, _ request: Request, from caller: Caller, _ judgement: Judgement, _ event: EventID,
        _ observer: (any AnswerObserver)?
    ) async throws(Refusal) {
        var forwarding = Forwarding(
            fields: identity.forwardedFields(of: request, caller: caller),
            added: try identity.lines(
                for: caller, sending: request,
                leaving: caller.scheme == .formMD5 ? judgement.claim?.unsignedParts ?? [] : [], over: exchange,
                event: event, at: clock.now))
        forwarding.addedToAnswer = UpdateField.line(for: caller)
        forwarding.observer = observer
        forwarding.caller = caller.session.map { .account($0.account.number) }
        switch backend {
        case .echo:
            guard request.isBodyWhole else { throw Gateway.tooLargeForEcho(limits) }
            let answer = Echo.answer(request, forwarding)
            observer?.didAnswer(answer)
            await exchange.respond(signed(answer.telling(caller), to: exchange, judgement))
        case .upstream(let pool):
            if request.isBodyWhole { return try await pool.forward(exchange, forwarding) }
            // Also where its route observes: the head has gone on with an identity, which must not vouch for
            // another body.
            forwarding.inspector = StreamedBodyCheck(caller.body)
            try await pool.forward(exchange, forwarding)
        }
    }

    /// What was signed must arrive; `Connection` would have it taken off.
    private static func checkForwardable(_ request: Request, _ caller: Caller) throws(Refusal) {
        if case .only(let signed) = caller.coveredFields, request.endingHere.intersects(signed) {
            throw Refusal(.malformed, "the Connection field names a field that is signed")
        }
    }

    private func answer(
        _ refusal: Refusal, _ exchange: any Exchange, _ judgement: Judgement, _ event: RequestEvent
    ) async {
        // What could not be read as a request speaks no dialect and names no app.
        let request = exchange.request
        let isRequest = !request.method.isEmpty
        count(refusal, event.caller, named: judgement.release, request)
        if judgement.failedVerification, !exchange.source.take(.failedVerification, now: exchange.loop.seconds) {
            exchange.closeAfterAnswer()
        }
        let disclosure = isRequest ? await disclosure(of: refusal, to: exchange, after: judgement) : .code
        let plain = RefusalAnswer.make(
            refusal, dialect: judgement.dialect, disclosure,
            text: text(for: refusal, answering: request, after: judgement),
            event: event.id, now: clock.now
        ).telling(event.caller)
        guard judgement.isOfMessageSignatures else { return await exchange.respond(plain) }
        let answer = AnswerSigning.asking(plain, for: refusal, of: request, judgement, event.id)
        await exchange.respond(signed(answer, to: exchange, judgement))
    }

    /// The words of the app that the request names, rightly or not: they are in every copy of it.
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

    /// What the caller is told beyond the code. Explanations are made on the loop, for anybody who names the
    /// release, so each has a bound and all of an address have a budget.
    private func disclosure(
        of refusal: Refusal, to exchange: any Exchange, after judgement: Judgement
    ) async -> RefusalAnswer.Disclosure {
        let request = exchange.request
        // Of a token alone there is nothing to explain but the reason.
        if let release = judgement.tokenRelease { return release.policy.detail == .exact ? .reason : .code }
        guard let release = await gate.releaseToExplain(for: request, judgement) else { return .code }
        guard exchange.source.take(.explanation, now: exchange.loop.seconds) else {
            // Of a key id that only looks like one of ours nothing is said, as below.
            return refusal.code == .unknownKey ? .code : .overBudget
        }
        let explanation = await gate.explanation(
            of: refusal, for: request, judgement, naming: release,
            within: .atMost(Gateway.explanationNanoseconds))
        return explanation.map { .explanation($0) } ?? .code
    }

    /// Signed where the caller speaks message-signatures: other schemes have no place for it. What callers who have proved
    /// nothing may have signed has a budget: a copy of a request proves nothing either. Beyond it an answer goes out unsigned, and a client believes nothing of it.
    func signed(_ answer: Answer, to exchange: any Exchange, _ judgement: Judgement) -> Answer {
        guard judgement.isSigned, judgement.isOfMessageSignatures else { return answer }
        let isCheap = judgement.shared != nil || judgement.step == .end
        guard isCheap || exchange.source.take(.signedRefusal, now: exchange.loop.seconds) else { return answer }
        return signing.signed(answer, to: exchange.request, by: judgement.shared, at: clock.now)
    }

    /// The meter tells what we said. Whom we let in stays counted as that when the backend fails; once the signature
    /// held, only a streamed body's digest, a `Connection` field and an upload ticket's claim can still say otherwise.
    private func count(_ refusal: Refusal, _ caller: Caller?, named: ReleaseKey?, _ request: Request) {
        let isLate = [.bodyMismatch, .malformed, .replayed, .badTicket].contains(refusal.code)
        guard let caller, !isLate else { return tally.refuse(refusal.code, named: named) }
        guard !request.isBodyWhole else { return }
        if caller.withheld?.ticket == nil {
            tally.accept(caller.release, under: caller.edition)
        } else {
            tally.acceptTicket(of: caller.release)
        }
    }

    private func record(_ event: RequestEvent, _ exchange: any Exchange) {
        guard let log else { return }
        guard event.isProven || log.admits(event.subject(of: exchange), now: exchange.loop.seconds) else { return }
        line = event.line(
            for: exchange, from: proxies.areNamed ? (exchange.attachment as? ProxiedClient)?.text : nil,
            clock: &logClock, reusing: line)
        log.write(line, event.refusal == nil ? .soon : .now)
    }
}

extension Request {
    /// Whether a body was announced that may be at most so long: of one without a length nothing is known.
    fileprivate func announcesBody(upTo most: Int) -> Bool {
        switch framing {
        case .none, .length(0): false
        case .length(let length): length <= most
        case .chunked: true
        }
    }
}

extension Caller {
    /// Whom the request counts to: a bearer session is known only here, for no key names it.
    fileprivate var proof: CallerProof { session.map { .session(account: $0.account.number) } ?? .release }
}

extension Judgement {
    /// What the head has proved about the caller; nil while no signature has held, and no token alone is a
    /// live one.
    fileprivate var proof: CallerProof? {
        if let bearing { return .session(account: bearing.account.number) }
        guard signer != nil else { return nil }
        return session.map { .session(account: $0.account.number) } ?? .release
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
