import CountersignGate
import CountersignWire

/// The settings of the traffic that an app takes.
extension PolicyKey {
    /// A release may override these.
    package static let traffic: [PolicyKey] = [
        rate(
            of: .account, meaning: "how many requests to the backend one signed-in account may make"),
        rate(
            of: .release,
            meaning: "how many requests to the backend all callers of one release may make together"),
        rate(
            of: .address,
            meaning: "how many requests to the backend one client address (IPv6: /64) may make"),
        PolicyKey(
            name: "allow-addresses", value: "ADDRESS[/BITS],…",
            meaning: "the client addresses that are served, all others are refused",
            fallback: "all", expected: PolicyKey.expectedRanges, visibility: .shown,
            apply: ranges { $0.traffic.allowedAddresses = $1 }),
        PolicyKey(
            name: "deny-addresses", value: "ADDRESS[/BITS],…",
            meaning: "client addresses that are refused, also if allow-addresses has them",
            fallback: "none", expected: PolicyKey.expectedRanges, visibility: .shown,
            apply: ranges { $0.traffic.deniedAddresses = $1 }),
        PolicyKey(
            name: "maintenance", value: "10m | off",
            meaning:
                "answers requests to the backend with 503 and the time after which to try again "
                + "(`countersign maintenance`)",
            fallback: "off", expected: "off, or a time from 1s to 24h such as 10m", visibility: .shown,
            apply: applyMaintenance),
    ]

    /// Settings that a browser's preflight request is answered by, which names no release.
    static let crossOrigin: [PolicyKey] = [
        PolicyKey(
            name: "cors-origins", value: "ORIGIN,… | *",
            meaning: "the web pages that may call the app from a browser, without cookies",
            fallback: "none", expected: PolicyKey.expectedOrigins + ", or *", visibility: .shown,
            apply: { policy, text in
                guard text == "*" || origins(text) != nil else { return nil }
                policy.traffic.crossOrigin.origins = text == "*" ? ["*"] : origins(text) ?? []
                return text
            }),
        PolicyKey(
            name: "cors-credentials", value: "ORIGIN,…",
            meaning: "the web pages that may call it with the cookies that the browser has for it",
            fallback: "none", expected: PolicyKey.expectedOrigins, visibility: .shown,
            apply: { policy, text in
                guard let origins = origins(text) else { return nil }
                policy.traffic.crossOrigin.credentialedOrigins = origins
                return text
            }),
    ]

    private static let expectedRanges =
        "addresses or ranges such as 10.0.0.0/8, without a bit set behind the prefix, at most "
        + "\(NetworkRange.most), joined by commas"
    private static let expectedOrigins =
        "origins such as https://app.example.com, in lower case, without a path and without the scheme's own "
        + "port, at most \(mostOrigins), joined by commas"
    private static let mostOrigins = 64

    private static func rate(of subject: RequestRates.Subject, meaning: String) -> PolicyKey {
        PolicyKey(
            name: "rate-\(subject.rawValue)", value: "N/UNIT[,burst=N]", meaning: meaning,
            fallback: "unlimited", expected: RateText.expected, visibility: .shown,
            apply: { policy, text in
                guard let rate = RequestRate(text) else { return nil }
                policy.traffic.rates[subject] = rate
                return rate.text
            })
    }

    private static func ranges(
        _ set: @escaping @Sendable (inout Policy, [NetworkRange]) -> Void
    ) -> @Sendable (inout Policy, String) -> String? {
        { policy, text in
            guard let ranges = NetworkRange.list(text) else { return nil }
            set(&policy, ranges)
            return text
        }
    }

    @Sendable private static func applyMaintenance(_ policy: inout Policy, from text: String) -> String? {
        guard text != "off" else {
            policy.traffic.maintenance = nil
            return text
        }
        guard let seconds = seconds(text[...]) else { return nil }
        policy.traffic.maintenance = seconds
        return "\(seconds)s"
    }

    private static func origins(_ text: String) -> [String]? {
        let origins = parts(text)
        guard origins.count <= mostOrigins, origins.allSatisfy(CrossOriginRules.isOrigin) else { return nil }
        return origins
    }
}

/// How a rate is written, for messages.
package enum RateText {
    package static let expected =
        "a number from 1 to \(RequestRate.most) for each second, minute, hour or day, such as 20/second or "
        + "100/minute,burst=20"
}
