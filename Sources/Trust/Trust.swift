/// The servers that a client accepts, by host:
/// `try Trust([.host("**.example.com", .pins(["sha256/…"], backups: ["sha256/…"]))], others: .system)`.
///
/// The rule with the most specific pattern applies: the exact host, then the pattern with more labels, then
/// `*.` before `**.`. If two rules have the same pattern, a server must meet both.
public struct Trust: Sendable {
    /// The treatment of a host that matches no rule.
    public enum Others: Sendable, Hashable {
        /// The client refuses it.
        case refused
        /// The system's policy applies.
        case system
    }

    /// The rules in their original order.
    public let rules: [Trust.Rule]
    /// The treatment of all other hosts.
    public let others: Others

    /// The order of the rules has no effect.
    public init(_ rules: [Trust.Rule], others: Others) {
        self.rules = rules
        self.others = others
    }

    /// The system's policy for every host.
    public static let system = Trust([], others: .system)

    /// The rules that apply to `host`: none, one, or several with the same pattern.
    public func rules(for host: Trust.Host) -> [Trust.Rule] {
        let matching = rules.filter { $0.pattern.matches(host) }
        guard let top = matching.map(\.pattern.rank).max() else { return [] }
        return matching.filter { $0.pattern.rank == top }
    }
}

extension Trust: ExpressibleByArrayLiteral {
    /// `[.host("**.example.com", pins: […], backups: […])]`: these rules, and the system's policy for every
    /// other host.
    public init(arrayLiteral rules: Trust.Rule...) { self.init(rules, others: .system) }
}

/// Why a value of this module is invalid: one sentence for the developer.
public struct TrustError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The value that was found and the value that was expected.
    public let description: String

    init(_ description: String) { self.description = description }
}
