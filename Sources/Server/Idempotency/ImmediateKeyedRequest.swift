import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignWire

extension Gateway {
    /// As ``forwardOnce(_:exchange:request:from:judgement:event:)``, for a request that is served without a
    /// task: it is resumed only if there is something else to wait for than the store and the backend.
    func forwardOnce(
        _ keyed: IdempotentRequest, exchange: any Exchange, to pool: UpstreamPool, from caller: Caller,
        event: ImmediateRequestEvent
    ) -> ImmediateOutcome {
        let immediate = ImmediateKeyedRequest(
            keyed, exchange: exchange, pool: pool, caller: caller, event: event, gateway: self)
        if idempotency.beginIfReady(keyed, reportingTo: immediate) { return .suspended }
        return immediate.finish { [self] () async throws(Refusal) in
            try await forwardOnce(
                keyed, exchange: exchange, request: exchange.request, from: caller,
                judgement: event.judgement, event: event)
        }
    }
}

/// A keyed request that waits for the store, and then for the backend, without a task. Confined to the loop
/// of its exchange, except for ``didBegin(_:)``.
final class ImmediateKeyedRequest: SuspendedRequest, IdempotencyStateReceiver, ForwardObserver,
    @unchecked Sendable
{
    private let keyed: IdempotentRequest
    private let exchange: any Exchange
    private let pool: UpstreamPool
    private let caller: Caller
    private let event: ImmediateRequestEvent
    private let gateway: Gateway
    private let recorder: ResponseRecorder
    /// What the store says; written before the loop is asked to go on, and read after.
    private var state: Result<IdempotencyState, Refusal>?

    init(
        _ keyed: IdempotentRequest, exchange: any Exchange, pool: UpstreamPool, caller: Caller,
        event: ImmediateRequestEvent, gateway: Gateway
    ) {
        self.gateway = gateway
        self.keyed = keyed
        self.exchange = exchange
        self.pool = pool
        self.caller = caller
        self.event = event
        recorder = ResponseRecorder(keeping: gateway.idempotency.largestKeptBody)
    }

    /// On the store's thread.
    func didBegin(_ result: Result<IdempotencyState, Refusal>) {
        state = result
        exchange.goOn(with: self)
    }

    func goOn() -> ImmediateOutcome {
        guard case .success(.begun)? = state else { return finish(goOnOtherwise) }
        do throws(Refusal) {
            var forwarding = try gateway.forwarding(
                of: exchange.request, from: caller, judgement: event.judgement, over: exchange,
                event: event)
            forwarding.observer = recorder
            exchange.forward(forwarding, to: pool, reportingTo: self)
            return .forwarded
        } catch {
            return .waits { [self] in await didFail(error, on: exchange) }
        }
    }

    /// Where the request is not to run.
    private func goOnOtherwise() async throws(Refusal) {
        let state = state ?? .failure(Refusal(.unavailable, detail: "the log did not take the request"))
        try await gateway.goOn(
            with: keyed, after: gateway.idempotency.decide(keyed, after: state), exchange: exchange,
            request: exchange.request, from: caller, judgement: event.judgement, event: event)
    }

    /// Does the rest on the connection's task.
    func finish(_ rest: @escaping () async throws(Refusal) -> Void) -> ImmediateOutcome {
        .waits { [self] in
            do throws(Refusal) {
                try await rest()
            } catch {
                return await event.didFail(error, on: exchange)
            }
            _ = event.didForward(exchange)
        }
    }

    func didForward(_ exchange: any Exchange) -> (() async -> Void)? {
        let outcome = recorder.outcome
        if gateway.idempotency.endIfReady(keyed, with: outcome) { return event.didForward(exchange) }
        return { [self] in
            await gateway.idempotency.end(keyed, with: outcome)
            _ = event.didForward(exchange)
        }
    }

    func didFail(_ refusal: Refusal, on exchange: any Exchange) async {
        await gateway.idempotency.end(keyed, with: recorder.outcome)
        await event.didFail(refusal, on: exchange)
    }
}
