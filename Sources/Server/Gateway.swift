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

    private let gate: Gate
    private let signing: AnswerSigning
    private let backend: Backend
    private let routes: RouteTable
    private let limits: Limits
    private let proxies: TrustedProxies
    private let log: EventLog?
    private let clock: any TimeSource
    private let identity: Identity
    let once: Once
    private let tally: Tally
    private var events: EventGenerator
    private var logClock = LogClock()
    private var line: [UInt8] = []

    init(
        gate: Gate, signing: AnswerSigning, backend: Backend, identity: Identity, once: Once, routes: RouteTable,
        limits: Limits, proxies: TrustedProxies = TrustedProxies(), tally: Tally, log: EventLog?, clock: any TimeSource,
        seed: UInt64
    ) {
        self.gate = gate
        self.signing = signing
        self.backend = backend
        self.identity = identity
        self.once = once
        self.routes = routes
        self.limits = limits
        self.proxies = proxies
        self.tally = tally
        self.log = log
        self.clock = clock
        events = EventGenerator(seed: seed)
    }

    func handle(_ exchange: any Exchange) async {
        if let client = proxies.claimed(by: exchange.request, from: exchange.peer) { exchange.attribute(to: client) }
        var event = RequestEvent(id: EventID(&events))
        do throws(Refusal) {
            switch routes.find(exchange.request) {
            case .elsewhere:
                try await takeBody(of: exchange)
                if let found = try await routes.legacy?.find(exchange.request, gate) {
                    try await serve(found, exchange, &event)
                } else {
                    try await pass(exchange, &event)
                }
            case .route(let route, let parameter): try await serve(route, parameter, exchange, &event)
            case .otherMethod(let allowed): await exchange.respond(.otherMethod(allowed: allowed))
            case .nothing: await exchange.respond(.notFound)
            }
        } catch {
            event.refusal = error
            await answer(error, exchange, event)
        }
        record(event, exchange)
    }

    func refuse(_ refusal: Refusal, _ exchange: any Exchange) async {
        var event = RequestEvent(id: EventID(&events))
        event.refusal = refusal
        await answer(refusal, exchange, event)
        record(event, exchange)
    }

    // MARK: Ways

    /// To the backend, if the gate lets it.
    private func pass(_ exchange: any Exchange, _ event: inout RequestEvent) async throws(Refusal) {
        let request = exchange.request
        let caller = try await gate.judge(request, from: { network(of: exchange) })
        event.caller = caller
        try Gateway.checkForwardable(request, caller)
        // Of a body that streams, the last piece decides.
        if request.isBodyWhole { tally.accept(caller.release, under: caller.edition) }
        try await passOn(exchange, request, from: caller, event.id)
        if !request.isBodyWhole { tally.accept(caller.release, under: caller.edition) }
    }

    /// To one of our own routes.
    private func serve(
        _ route: Route, _ parameter: String, _ exchange: any Exchange, _ event: inout RequestEvent
    ) async throws(Refusal) {
        if exchange.request.framing != .none { try await exchange.readWholeBody() }
        let request = exchange.request
        var caller: Caller?
        if route.admission != .anyone {
            let judged = try await gate.judge(
                request, from: { network(of: exchange) }, for: .ownRoute, as: route.effect)
            event.caller = judged
            tally.accept(judged.release, under: judged.edition)
            caller = judged
            // The other schemes leave something of a request unsigned, and have no place for a signed answer.
            guard judged.scheme == .messageSignatures else {
                throw Refusal(.schemeNotAllowed, "the authority's own routes are for message-signatures")
            }
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
        await exchange.respond(await signed(plain, to: request))
    }

    /// To where old clients sign in. Who does not sign is answered like one who does: they read no problem documents.
    private func serve(
        _ found: LegacyRoutes.Found, _ exchange: any Exchange, _ event: inout RequestEvent
    ) async throws(Refusal) {
        let request = exchange.request
        var caller: Caller?
        do throws(Refusal) {
            if found.isSigned {
                let judged = try await gate.judge(request, from: { network(of: exchange) }, for: .login, as: .reads)
                event.caller = judged
                tally.accept(judged.release, under: judged.edition)
                caller = judged
            } else {
                try gate.checkAuthority(of: request)
            }
            let call = RouteCall(
                request: request, caller: caller, address: ClientAddress(client(of: exchange)), event: event.id,
                parameter: "", now: clock.now)
            guard let legacy = routes.legacy else { return }
            let plain = try await legacy.answer(found, call).telling(caller)
            event.isSignedIn = true
            await exchange.respond(await signed(plain, to: request))
        } catch {
            guard !found.isSigned else { throw error }
            event.refusal = error
            tally.refuse(error.code, named: nil)
            await exchange.respond(RefusalAnswer.unsignedLegacy(error, event.id))
        }
    }

    // MARK: Where from

    private func client(of exchange: any Exchange) -> NetworkAddress? {
        proxies.client(of: exchange.request, from: exchange.peer)
    }

    /// Four bytes or eight, and none where that cannot be told.
    private func network(of exchange: any Exchange) -> [UInt8] {
        client(of: exchange).map { ClientAddress($0).bytes } ?? []
    }

    // MARK: Steps

    /// Reads a body that fits; a larger one must say its length, and streams behind the gate.
    private func takeBody(of exchange: any Exchange) async throws(Refusal) {
        let framing = exchange.request.framing
        if case .length(let length) = framing, length > limits.heldBodyBytes {
            guard length <= limits.bodyBytes else {
                throw Refusal(.tooLarge, "a body is limited to \(limits.bodyBytes) bytes")
            }
            exchange.request.isBodyWhole = false
        } else if framing != .none {
            try await exchange.readWholeBody()
        }
    }

    private func passOn(
        _ exchange: any Exchange, _ request: Request, from caller: Caller, _ event: EventID
    ) async throws(Refusal) {
        #if SABOTAGE
            if Sabotage.isOn(.onceForgotten) { return try await send(exchange, request, from: caller, event, nil) }
        #endif
        if let keyed = try KeyedRequest.read(request, from: caller, at: clock.now) {
            return try await passOnce(keyed, exchange, request, from: caller, event)
        }
        try await send(exchange, request, from: caller, event, nil)
    }

    /// To the backend, whatever was sent before. `observer` sees the answer.
    func send(
        _ exchange: any Exchange, _ request: Request, from caller: Caller, _ event: EventID,
        _ observer: (any AnswerObserver)?
    ) async throws(Refusal) {
        var forwarding = Forwarding(
            fields: identity.forwardedFields(of: request, caller: caller),
            added: try identity.lines(for: caller, sending: exchange, event: event, at: clock.now))
        forwarding.addedToAnswer = UpdateField.line(for: caller)
        forwarding.observer = observer
        forwarding.caller = caller.session.map { .account($0.account.number) }
        switch backend {
        case .echo:
            guard request.isBodyWhole else {
                throw Refusal(.tooLarge, "the built-in echo backend takes bodies up to \(limits.heldBodyBytes) bytes")
            }
            let answer = Echo.answer(request, forwarding)
            observer?.didAnswer(answer)
            await exchange.respond(await signed(answer.telling(caller), to: request))
        case .upstream(let pool):
            if !request.isBodyWhole { forwarding.inspector = StreamedBodyCheck(caller.body) }
            try await pool.forward(exchange, forwarding)
        }
    }

    /// What was signed must arrive; `Connection` would have it taken off.
    private static func checkForwardable(_ request: Request, _ caller: Caller) throws(Refusal) {
        if case .only(let signed) = caller.coveredFields, Forwarding.takenOff(request) & signed != 0 {
            throw Refusal(.malformed, "the Connection field names a field that is signed")
        }
    }

    private func answer(_ refusal: Refusal, _ exchange: any Exchange, _ event: RequestEvent) async {
        // What could not be read as a request speaks no dialect and names no app.
        let request = exchange.request
        let isRequest = !request.method.isEmpty
        let standing = isRequest ? await gate.standing(of: request) : Standing()
        count(refusal, event.caller, named: standing.release, request)
        let explanation = isRequest ? await gate.explanation(of: refusal, for: request, standing) : nil
        let plain = RefusalAnswer.make(
            refusal, dialect: isRequest ? gate.dialect(for: request) : .problem, explanation, event: event.id,
            now: clock.now
        ).telling(event.caller)
        guard isRequest, gate.isOfMessageSignatures(request) else { return await exchange.respond(plain) }
        let answer = AnswerSigning.asking(plain, for: refusal, of: request, standing, event.id)
        await exchange.respond(signing.signed(answer, to: request, standing, at: clock.now))
    }

    /// Signed where the caller speaks message-signatures: other schemes have no place for it.
    func signed(_ answer: Answer, to request: Request) async -> Answer {
        guard gate.isOfMessageSignatures(request) else { return answer }
        return signing.signed(answer, to: request, await gate.standing(of: request), at: clock.now)
    }

    /// The meter tells what we said. Whom we let in stays counted as that when the backend fails; once the signature
    /// held, only a streamed body's digest and a `Connection` field can still say otherwise.
    private func count(_ refusal: Refusal, _ caller: Caller?, named: ReleaseKey?, _ request: Request) {
        guard let caller, refusal.code != .bodyMismatch, refusal.code != .malformed else {
            return tally.refuse(refusal.code, named: named)
        }
        if !request.isBodyWhole { tally.accept(caller.release, under: caller.edition) }
    }

    private func record(_ event: RequestEvent, _ exchange: any Exchange) {
        guard let log else { return }
        guard event.isProven || log.admits(event.subject(of: exchange), now: exchange.loop.seconds) else { return }
        line = event.line(
            for: exchange, from: proxies.named(in: exchange.request, by: exchange.peer), clock: &logClock, reusing: line
        )
        log.write(line, event.refusal == nil ? .soon : .now)
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
