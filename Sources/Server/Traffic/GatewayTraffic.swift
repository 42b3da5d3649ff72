import CountersignGate
import CountersignHTTP
import CountersignSchemes
import CountersignWire

/// The traffic rules, applied to requests on their way through the gateway.
extension Gateway {
    /// Refuses a client whose address is not served, or that makes too many requests.
    func screen(_ exchange: any Exchange, event: RequestEvent) throws(Refusal) {
        guard traffic.settings.isActive else { return }
        let verdict = traffic.screen(client(of: exchange), at: Gateway.microseconds())
        guard let refusal = verdict.refusal else { return }
        event.trafficFields = verdict.fields
        throw refusal
    }

    /// Applies the rules of an app to a request to the backend, and counts it. After the replay guard: a copy
    /// of a request takes nothing of its caller's rate.
    @inline(never)
    func checkTraffic(
        by rules: AppTraffic, of request: Request, from caller: Caller?, over exchange: any Exchange,
        event: RequestEvent
    ) throws(Refusal) {
        event.trafficFields = CrossOriginResponse.fields(for: request, by: rules.rules.crossOrigin)
        let party = TrafficParty(
            account: caller?.session?.account.number, release: caller?.release.id,
            address: client(of: exchange))
        let verdict = traffic.verdict(on: request, of: party, by: rules, at: Gateway.microseconds())
        event.trafficFields += verdict.fields
        if let refusal = verdict.refusal { throw refusal }
    }

    /// Adds fields to the response of a forwarded request. The backend's own fields for web pages do not pass
    /// where the app has rules for those.
    static func add(
        _ fields: [ServerResponse.Field], to forwarding: inout ForwardedRequest, by rules: AppTraffic?
    ) {
        for field in fields {
            forwarding.addedToAnswer += "\(field.name): \(field.value)\r\n".utf8
        }
        if rules?.rules.crossOrigin.isEmpty == false { forwarding.crossOriginFields = .removed }
    }

    /// The monotonic clock.
    private static func microseconds() -> Int64 { Int64(clamping: RequestEvent.nanoseconds() / 1_000) }
}
