import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignSchemes
import CountersignWire

/// The parties that a request counts to.
struct TrafficParty {
    /// The account's number; nil without a session.
    var account: Int64?
    /// The release whose signature was verified; nil for a request without proof.
    var release: KeyID?
    /// The client; nil if its address is unknown.
    var address: NetworkAddress?
}

/// Applies traffic rules: addresses, maintenance, sizes and rates, in this order, so that a request is
/// counted only if nothing else refuses it. Confined to its loop; the counter is shared. Source:
/// docs/decisions/0084-traffic-rules.md.
final class TrafficControl {
    /// The rules for all apps; a reload replaces them.
    var settings: TrafficSettings
    private let counter: RateCounter

    init(_ settings: TrafficSettings, counter: RateCounter) {
        self.settings = settings
        self.counter = counter
    }

    /// What the response says about rates, and the refusal if there is one.
    struct Verdict {
        var fields: [ServerResponse.Field] = []
        var refusal: Refusal?
    }

    // MARK: All requests

    /// Checks the client's address before anything of the request is judged.
    func screen(_ address: NetworkAddress?, at now: Int64) -> Verdict {
        guard settings.isActive else { return Verdict() }
        var rules = TrafficRules()
        (rules.allowedAddresses, rules.deniedAddresses) = (settings.allowed, settings.denied)
        guard rules.admits(address) else { return Verdict(refusal: TrafficControl.addressRefusal) }
        guard let rate = settings.rate else { return Verdict() }
        // Of no app and no route.
        let key = TrafficControl.key(["", "", "address", rate.text, TrafficControl.text(of: address)])
        switch counter.take([.init(name: "server-address", rate: rate, key: key)], at: now) {
        case .allowed: return Verdict()
        case .refused(let state, let wait): return TrafficControl.refused(state, wait: wait)
        }
    }

    // MARK: Requests of an app

    /// Checks the address alone, for the authority's routes.
    func admit(_ address: NetworkAddress?, by rules: TrafficRules) throws(Refusal) {
        guard rules.admits(address) else { throw TrafficControl.addressRefusal }
    }

    /// Checks a request to the backend, and counts it.
    func verdict(
        on request: Request, of party: TrafficParty, by traffic: AppTraffic, at now: Int64
    ) -> Verdict {
        do throws(Refusal) {
            try admit(party.address, by: traffic.rules)
            if let seconds = traffic.rules.maintenance {
                throw Refusal(
                    .maintenance, detail: "\(traffic.app) is in maintenance", retryAfter: seconds)
            }
            let limiting = try traffic.limitingRules(for: request)
            for rule in limiting { try TrafficControl.checkSize(of: request, by: rule) }
            let counts =
                TrafficControl.counts(of: party, rates: traffic.rules.rates, app: traffic.app, rule: nil)
                + limiting.flatMap {
                    TrafficControl.counts(of: party, rates: $0.limits.rates, app: traffic.app, rule: $0)
                }
            guard !counts.isEmpty else { return Verdict() }
            switch counter.take(counts, at: now) {
            case .allowed(let state): return Verdict(fields: state.map(TrafficControl.fields(of:)) ?? [])
            case .refused(let state, let wait): return TrafficControl.refused(state, wait: wait)
            }
        } catch {
            return Verdict(refusal: error)
        }
    }

    /// Refuses a body by its announced length before it is read, once the head has named the release.
    func checkAnnouncedSize(of request: Request, by traffic: AppTraffic) throws(Refusal) {
        for rule in try traffic.limitingRules(for: request) {
            try TrafficControl.checkSize(of: request, by: rule)
        }
    }

    private static func checkSize(of request: Request, by rule: RouteRule) throws(Refusal) {
        if let most = rule.limits.headBytes, request.head.count > most {
            throw Refusal(.tooLarge, detail: "a head is limited to \(most) bytes for \(rule.prefixText)")
        }
        guard let most = rule.limits.bodyBytes else { return }
        var length = request.body.count
        if case .length(let announced) = request.framing { length = max(length, announced) }
        guard length <= most else {
            throw Refusal(.tooLarge, detail: "a body is limited to \(most) bytes for \(rule.prefixText)")
        }
    }

    // MARK: Rates

    private static func counts(
        of party: TrafficParty, rates: RequestRates, app: String, rule: RouteRule?
    ) -> [RateCounter.Count] {
        guard !rates.isEmpty else { return [] }
        let route = rule.map { "\($0.prefixText) \($0.methods)" } ?? ""
        return RequestRates.Subject.allCases.compactMap { subject in
            guard let rate = rates[subject], let id = text(of: subject, in: party) else { return nil }
            let parts = [app, route, subject.rawValue, rate.text, id]
            // A release key is in every copy of the app: one of its callers must not use up the others' rate.
            return RateCounter.Count(
                name: rule == nil ? subject.rawValue : "route-\(subject.rawValue)", rate: rate,
                key: key(parts),
                shares: subject == .release ? shares(of: party.address, in: parts) : [])
        }
    }

    /// Of the networks around the address, too: one party may have many networks of 64 bits.
    static func shares(of address: NetworkAddress?, in parts: [String]) -> [[UInt8]] {
        let origin = ClientAddress((address ?? .unknown).bytes.span) ?? .unknown
        return origin.nestedKeys.map { key(parts) + [0] + $0 }
    }

    private static func text(of subject: RequestRates.Subject, in party: TrafficParty) -> String? {
        switch subject {
        case .account: party.account.map(String.init)
        case .release: party.release?.description
        case .address: text(of: party.address)
        }
    }

    /// All clients whose address is unknown share one count.
    private static func text(of address: NetworkAddress?) -> String {
        (address ?? .unknown).subscriber.text
    }

    private static func key(_ parts: [String]) -> [UInt8] { Array(parts.joined(separator: "\0").utf8) }

    private static let addressRefusal = Refusal(.addressDenied)

    private static func refused(_ state: RateCounter.State, wait: Int) -> Verdict {
        Verdict(
            fields: fields(of: state),
            refusal: Refusal(
                .rateLimited,
                detail: "\(state.rate.text) by \(state.name)", retryAfter: wait))
    }

    /// Source: draft-ietf-httpapi-ratelimit-headers-10, §3 and §4.
    private static func fields(of state: RateCounter.State) -> [ServerResponse.Field] {
        [
            ServerResponse.Field(
                "RateLimit-Policy",
                value: "\"\(state.name)\";q=\(state.rate.count);w=\(state.rate.unit.seconds)"),
            ServerResponse.Field(
                "RateLimit", value: "\"\(state.name)\";r=\(state.remaining);t=\(state.reset)"),
        ]
    }
}
