import CountersignGate
import CountersignHTTP
import CountersignWire

extension Gateway {
    /// To the backend, for a caller who has proved nothing, where the app's rules let such a one through.
    func passOn(
        _ exchange: any Exchange, _ request: inout Request, by passage: Passage, _ event: inout RequestEvent
    ) async throws(Refusal) {
        try exchange.checkOverload()
        if request.bodyState == .awaited {
            if case (.upstream, .length(let length)) = (backend, request.framing), length <= limits.bodyBytes {
                request.bodyState = .streaming
                exchange.request.bodyState = .streaming
            } else {
                try await readBody(of: exchange, atMost: limits.heldBodyBytes, into: &request)
            }
        }
        event.passage = passage
        tally.pass(passage)
        let forwarding = Forwarding(
            fields: identity.forwardedFields(ofUnproven: request),
            added: identity.lines(for: passage, sending: request, over: exchange, event: event.id))
        switch backend {
        case .echo:
            guard request.isBodyWhole else { throw Gateway.tooLargeForEcho(limits) }
            await exchange.respond(Echo.answer(request, forwarding))
        case .upstream(let pool): try await pool.forward(exchange, forwarding)
        }
    }
}
