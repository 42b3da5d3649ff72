/// Whom to take for a server, host by host:
/// `try Trust([.host("**.example.com", .pins(["sha256/…"], backups: ["sha256/…"]))], others: .system)`.
///
/// The rule whose pattern says most of a host is the one that counts: the exact one, else the one with more
/// labels, else `*.` before `**.`. Where a pattern is named twice, both rules have to be met.
public struct Trust: Sendable {
    /// What becomes of a host that no rule names.
    public enum Others: Sendable, Hashable {
        /// It is refused.
        case refused
        /// It goes by the machine's own rule.
        case system
    }

    /// In the order in which they were written.
    public let rules: [Trust.Rule]
    /// What becomes of the rest.
    public let others: Others

    /// From rules, in any order.
    public init(_ rules: [Trust.Rule], others: Others) {
        self.rules = rules
        self.others = others
    }

    /// Every host by the machine's own rule.
    public static let system = Trust([], others: .system)

    /// The rules that count for `host`: none, one, or several of the same pattern.
    public func rules(for host: Trust.Host) -> [Trust.Rule] {
        let matching = rules.filter { $0.pattern.matches(host) }
        guard let top = matching.map(\.pattern.rank).max() else { return [] }
        return matching.filter { $0.pattern.rank == top }
    }
}

extension Trust: ExpressibleByArrayLiteral {
    /// `[.host("**.example.com", pins: […], backups: […])]`: these rules, and every other host by the
    /// machine's own.
    public init(arrayLiteral rules: Trust.Rule...) { self.init(rules, others: .system) }
}

/// Why a value of trust cannot be made: one sentence for the developer.
public struct TrustError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What was found, and what was expected.
    public let description: String

    init(_ description: String) { self.description = description }
}
