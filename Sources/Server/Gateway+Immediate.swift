import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignSchemes
import CountersignWire

/// Requests for the backend that need not wait: the same steps as those of ``Gateway/handle(_:)``, without a
/// task.
extension Gateway {
    func handleAtOnce(_ exchange: any Exchange) -> ImmediateOutcome {
        guard decider == nil, case .upstream(let pool) = backend, releases?.hasChanged != true
        else { return .declined }
        // A constant, because each step would copy a variable.
        let head = exchange.request
        guard case .elsewhere = routes.find(head), isOfNoLegacyRoute(head),
            // An OPTIONS request may be a preflight, which is answered before the gate.
            !head.matches(head.method, text: "OPTIONS"),
            let bodyState = try? bodyState(of: head.framing), bodyState != .streaming
        else { return .declined }
        let judgement = beginJudgement(of: head, on: exchange)
        let event = beginEvent(judgement, on: exchange)
        do throws(Refusal) {
            try screen(exchange, event: event)
        } catch {
            return answerAtOnce(error, on: exchange, request: head, judgement: judgement, event: event)
        }
        var request = consume head
        if bodyState != .whole {
            request.bodyState = bodyState
            exchange.request.bodyState = bodyState
        }
        return serveAtOnce(exchange, to: pool, request: &request, event: event)
    }

    private func beginEvent(_ judgement: Judgement, on exchange: any Exchange) -> ImmediateRequestEvent {
        let (id, began) = (EventID(&events), exchange.loop.jobBegan)
        // One that something still holds is left to it.
        guard var event = spareEvents.popLast(), isKnownUniquelyReferenced(&event) else {
            return ImmediateRequestEvent(id: id, began: began, gateway: self, judgement: judgement)
        }
        event.renew(id: id, began: began, gateway: self, judgement: judgement)
        return event
    }

    /// Spare events at most.
    private static let mostEvents = 64

    fileprivate func keep(_ event: ImmediateRequestEvent) {
        if spareEvents.count < Gateway.mostEvents { spareEvents.append(event) }
    }

    /// Judges a request for the backend, and forwards it.
    private func serveAtOnce(
        _ exchange: any Exchange, to pool: UpstreamPool, request: inout Request, event: ImmediateRequestEvent
    ) -> ImmediateOutcome {
        let judgement = event.judgement
        let caller: Caller
        do throws(Refusal) {
            guard
                let admitted = try admitIfReady(
                    exchange, request: &request, judgement: judgement, for: .backend, as: nil)
            else {
                return finish(
                    exchange, request: request, judgement: judgement, event: event, from: .waiting)
            }
            caller = admitted
        } catch {
            if let lookup = gate.takeDeferredLookup() {
                return finish(
                    exchange, request: request, judgement: judgement, event: event, from: .lookingUp(lookup))
            }
            return refuseAtOnce(error, on: exchange, request: request, judgement: judgement, event: event)
        }
        // A ticket is spent in the store.
        guard !caller.bearsTicket else {
            return finish(
                exchange, request: request, judgement: judgement, event: event, from: .admitted(caller))
        }
        event.caller = caller
        return forwardAtOnce(exchange, to: pool, request: request, from: caller, event: event)
    }

    private func forwardAtOnce(
        _ exchange: any Exchange, to pool: UpstreamPool, request: Request, from caller: Caller,
        event: ImmediateRequestEvent
    ) -> ImmediateOutcome {
        let judgement = event.judgement
        do throws(Refusal) {
            if let rules = caller.release.traffic {
                try checkTraffic(by: rules, of: request, from: caller, over: exchange, event: event)
            }
            try Gateway.checkForwardable(request, from: caller)
            if let keyed = try keyedRequest(of: request, from: caller, over: exchange) {
                event.trafficFields.append(idempotency.retention)
                return forwardOnce(keyed, exchange: exchange, to: pool, from: caller, event: event)
            }
            let forwarding = try forwarding(
                of: request, from: caller, judgement: judgement, over: exchange, event: event)
            exchange.forward(forwarding, to: pool, reportingTo: event)
            return .forwarded
        } catch {
            return answerAtOnce(error, on: exchange, request: request, judgement: judgement, event: event)
        }
    }

    /// Answers a request that the gate has refused, or forwards it without an identity if the app's policy
    /// lets such requests pass.
    private func refuseAtOnce(
        _ refusal: Refusal, on exchange: any Exchange, request: Request, judgement: Judgement,
        event: RequestEvent
    ) -> ImmediateOutcome {
        do throws(Refusal) {
            guard let passage = try gate.passThrough(for: request, judgement: judgement, after: refusal)
            else {
                return answerAtOnce(
                    refusal, on: exchange, request: request, judgement: judgement, event: event)
            }
            return .waits { [self] in
                var request = request
                do throws(Refusal) {
                    try await forwardUnproven(
                        exchange, request: &request, by: passage, judgement: judgement, event: event)
                } catch {
                    return await end(judgement, refusing: error, event: event, on: exchange)
                }
                end(judgement, event: event, of: exchange)
            }
        } catch {
            return answerAtOnce(error, on: exchange, request: request, judgement: judgement, event: event)
        }
    }

    /// Answers with a refusal, unless its reason has to be searched for.
    private func answerAtOnce(
        _ refusal: Refusal, on exchange: any Exchange, request: Request, judgement: Judgement,
        event: RequestEvent
    ) -> ImmediateOutcome {
        event.refusal = refusal
        let disclosure: RefusalResponse.Disclosure
        if let release = judgement.tokenRelease {
            disclosure = Gateway.disclosure(toTokenOf: release)
        } else if gate.releaseToExplain(for: request, judgement: judgement) == nil {
            disclosure = .code
        } else {
            // The search takes long: the task waits for a turn first.
            return .waits { [self] in
                await end(judgement, refusing: refusal, event: event, on: exchange)
            }
        }
        writeResponse(
            to: refusal, disclosing: disclosure, of: request, on: exchange, judgement: judgement,
            event: event)
        guard exchange.respondAtOnce(response) else {
            let whole = ServerResponse(response)
            return .waits { [self] in
                await exchange.respond(whole)
                end(judgement, event: event, of: exchange)
            }
        }
        end(judgement, event: event, of: exchange)
        return .answered
    }

    /// Whether no legacy route can be called; false if that cannot be found out now.
    private func isOfNoLegacyRoute(_ request: Request) -> Bool {
        guard let legacy = routes.legacy else { return true }
        return (try? legacy.mayBeCalled(by: request, keeping: &legacyScreen)) == false
    }

    /// Goes on where the admission stands, on the connection's task.
    private func finish(
        _ exchange: any Exchange, request: Request, judgement: Judgement, event: RequestEvent,
        from admission: Admission
    ) -> ImmediateOutcome {
        .waits { [self] in
            var request = request
            do throws(Refusal) {
                try await finishBackendRequest(
                    exchange, request: &request, judgement: judgement, event: event, from: admission)
            } catch {
                return await end(judgement, refusing: error, event: event, on: exchange)
            }
            end(judgement, event: event, of: exchange)
        }
    }

    /// Answers with a refusal, and ends the request.
    func end(
        _ judgement: Judgement, refusing refusal: Refusal, event: RequestEvent, on exchange: any Exchange
    ) async {
        event.refusal = refusal
        await answer(refusal, on: exchange, judgement: judgement, event: event)
        end(judgement, event: event, of: exchange)
    }
}

/// The event of a request that is begun without a task; it ends the request when that has been forwarded.
///
/// Unchecked, as its superclass is: confined to the loop of its request.
final class ImmediateRequestEvent: RequestEvent, ForwardObserver, @unchecked Sendable {
    /// Nil between two requests, while the gateway keeps the event.
    private(set) var gateway: Gateway?
    private(set) var judgement: Judgement

    init(id: EventID, began: Int64, gateway: Gateway, judgement: Judgement) {
        self.gateway = gateway
        self.judgement = judgement
        super.init(id: id, began: began)
    }

    func renew(id: EventID, began: Int64, gateway: Gateway, judgement: Judgement) {
        self.gateway = gateway
        self.judgement = judgement
        renew(id: id, began: began)
    }

    func didForward(_ exchange: any Exchange) -> (() async -> Void)? {
        guard let gateway = gateway.take() else { return nil }
        gateway.end(judgement, event: self, of: exchange)
        gateway.keep(self)
        return nil
    }

    func didFail(_ refusal: Refusal, on exchange: any Exchange) async {
        await gateway?.end(judgement, refusing: refusal, event: self, on: exchange)
    }
}
