import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignSchemes
import CountersignWire

extension Gateway {
    /// To where old clients sign in. Who does not sign is answered like one who does: they read no problem documents.
    func serve(
        _ found: LegacyRoutes.Found, _ legacy: LegacyRoutes, _ exchange: any Exchange, _ request: inout Request,
        _ judgement: Judgement, _ event: inout RequestEvent
    ) async throws(Refusal) {
        var caller: Caller?
        var (unsigned, isCounted) = (ReleaseKey?.none, false)
        do throws(Refusal) {
            if found.isSigned {
                let effect = found.call.effect
                let judged = try await admit(exchange, &request, judgement, for: .login, as: effect)
                event.caller = judged
                tally.accept(judged.release, under: judged.edition)
                caller = judged
            } else {
                try gate.checkAuthority(of: request)
                unsigned = try legacy.release(of: request, to: found.app)
                if let unsigned {
                    try unsigned.checkServed(
                        as: found.call.effect, from: { network(of: exchange) }, at: clock.now)
                    tally.accept(unsigned, under: .current)
                    isCounted = true
                }
            }
            let call = RouteCall(
                request: request, caller: caller, unsigned: unsigned, address: ClientAddress(client(of: exchange)),
                event: event.id, parameter: "", now: clock.now)
            let plain = try await legacy.answer(found, call).telling(caller)
            event.isSignedIn = true
            await exchange.respond(signed(plain, to: exchange, judgement))
        } catch {
            guard !found.isSigned else { throw error }
            event.refusal = error
            if !isCounted { tally.refuse(error.code, named: unsigned) }
            let text = text(
                for: error, answering: request, of: found.app.name.description, release: unsigned?.id)
            await exchange.respond(RefusalAnswer.unsignedLegacy(error, text: text, event: event.id))
        }
    }
}
