import CountersignGate
import CountersignHTTP
import CountersignWire

/// The client addresses that the server serves, for all apps and the authority's routes together.
public struct TrafficSettings: Sendable, Equatable {
    /// Empty for all addresses.
    package var allowed: [NetworkRange] = []
    /// These are refused even if they are allowed.
    package var denied: [NetworkRange] = []
    /// How many requests one address may make, counted before anything is proved; nil for no limit.
    package var rate: RequestRate?

    /// The defaults.
    public init() {}

    /// Whether any request can be refused.
    var isActive: Bool { !allowed.isEmpty || !denied.isEmpty || rate != nil }
}

extension Setting {
    static let traffic: [Setting] = [
        ranges(
            "allow-addresses", at: \.traffic.allowed,
            meaning: "the client addresses that are served, all others are refused (default: all)"),
        ranges(
            "deny-addresses", at: \.traffic.denied,
            meaning: "client addresses that are refused, also if allow-addresses has them (default: none)"),
        Setting(
            "rate-address", placeholder: "N/UNIT[,burst=N]",
            meaning:
                "how many requests one client address (IPv6: /64) may make, before anything is proved about "
                + "them; `off` for no limit",
            expected:
                "off, or a number from 1 to \(RequestRate.most) for each second, minute, hour or day, such "
                + "as 200/second or 600/minute,burst=100",
            kind: .text(["off"]), effect: .onReload,
            set: { configuration, text in
                if text == "off" { return configuration.traffic.rate = nil }
                return RequestRate(text).map { configuration.traffic.rate = $0 }
            },
            show: { .string($0.traffic.rate?.text ?? "off") }),
    ]

    private static func ranges(
        _ name: String, at path: any WritableKeyPath<Configuration, [NetworkRange]> & Sendable,
        meaning: String
    ) -> Setting {
        Setting(
            name, placeholder: "ADDRESS[/BITS],…", meaning: meaning,
            expected:
                "addresses or ranges such as 10.0.0.0/8, at most \(NetworkRange.most), joined by commas",
            effect: .onReload,
            set: { configuration, text in
                NetworkRange.list(text).map { configuration[keyPath: path] = $0 }
            },
            show: {
                let ranges = $0[keyPath: path]
                return ranges.isEmpty ? .null : .string(ranges.map(\.description).joined(separator: ","))
            })
    }
}
