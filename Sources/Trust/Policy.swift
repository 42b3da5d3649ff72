extension Trust {
    /// The requirements for a server. Every policy checks the certificate chain (RFC 5280 §6) and the host
    /// name (RFC 9525 §6), unless a method that names the omission turns a check off.
    public struct Policy: Sendable {
        enum Demand: Sendable {
            case nothingMore
            case certificates([Trust.Certificate])
            case pins(PinSet)
            case custom(name: String, @Sendable (Trust.Evidence) -> Opinion)
        }

        enum Kind: Sendable {
            case one(Demand, ChainCheck, NameCheck)
            /// At least one.
            case all([Trust.Policy])
            case anything
        }

        /// Whether the chain is checked.
        enum ChainCheck: Sendable { case checked, unchecked }
        /// Whether the host name is checked.
        enum NameCheck: Sendable { case checked, unchecked }

        /// The result of a custom policy.
        public enum Opinion: Sendable {
            /// The server meets the policy.
            case accept
            /// The server does not meet the policy, for this reason in words.
            case refuse(String)
        }

        let kind: Kind

        /// The system's policy: a chain to one of the system's authorities, and the right name.
        public static let system = Trust.Policy(.nothingMore)

        /// One of these certificates: the server's own, or one that its chain leads to. They replace the
        /// system's authorities, and may be self-signed.
        public static func certificates(_ certificates: [Trust.Certificate]) throws(TrustError)
            -> Trust.Policy
        {
            guard !certificates.isEmpty else {
                throw TrustError("pinned certificates: expected at least one")
            }
            return Trust.Policy(.certificates(certificates))
        }

        /// A chain to one of the system's authorities that contains one of these keys, or a self-signed
        /// certificate with one of them.
        public static func pins(_ set: PinSet) -> Trust.Policy { Trust.Policy(.pins(set)) }

        /// The same from texts: `.pins(["sha256/…"], backups: ["sha256/…"])`.
        public static func pins(_ pins: [String], backups: [String]) throws(TrustError) -> Trust.Policy {
            Trust.Policy(.pins(try PinSet(read(pins), backups: read(backups))))
        }

        /// A custom check, after those of chain and name. It runs during the handshake, so it must not wait.
        /// Refusals contain `name`.
        public static func custom(_ name: String, _ judge: @escaping @Sendable (Trust.Evidence) -> Opinion)
            -> Trust.Policy
        {
            Trust.Policy(.custom(name: name, judge))
        }

        /// Every one of the policies must accept the server.
        public static func all(_ policies: [Trust.Policy]) throws(TrustError) -> Trust.Policy {
            guard !policies.isEmpty else { throw TrustError("all of no policies: expected at least one") }
            return Trust.Policy(kind: .all(policies))
        }

        /// No check at all: any server is accepted, and an attacker reads and changes everything. For a test
        /// bench.
        public static let acceptsAnyServerAndSoAnyAttacker = Trust.Policy(kind: .anything)

        /// The same policy without the check of the chain and of the certificates' dates. The pin must then
        /// be the server's own key or certificate: nothing proves that the other certificates belong to it.
        public func withoutCheckingTheChain() -> Trust.Policy {
            changed { demand, _, name in .one(demand, .unchecked, name) }
        }

        /// The same policy without the check of the host name.
        public func withoutCheckingTheHostName() -> Trust.Policy {
            changed { demand, chain, _ in .one(demand, chain, .unchecked) }
        }

        private init(_ demand: Demand) { kind = .one(demand, .checked, .checked) }

        private init(kind: Kind) { self.kind = kind }

        private func changed(_ change: (Demand, ChainCheck, NameCheck) -> Kind) -> Trust.Policy {
            switch kind {
            case .one(let demand, let chain, let name): Trust.Policy(kind: change(demand, chain, name))
            case .all(let policies): Trust.Policy(kind: .all(policies.map { $0.changed(change) }))
            case .anything: self
            }
        }

        private static func read(_ texts: [String]) throws(TrustError) -> [Trust.Pin] {
            var pins: [Trust.Pin] = []
            for text in texts { pins.append(try Trust.Pin(text)) }
            return pins
        }
    }
}

extension Trust {
    /// A policy for the hosts that match a pattern.
    public struct Rule: Sendable {
        /// The effect of a policy that is not met.
        public enum Mode: Sendable, Hashable {
            /// The connection is refused before a byte of the request is sent.
            case enforce
            /// The violation is reported. The client accepts a server that meets the policy or the system's
            /// own: testing new pins must not weaken the existing trust. Source: RFC 7469 §2.1.2 has the same
            /// distinction.
            case reportOnly
        }

        /// The hosts that the rule applies to.
        public let pattern: Trust.HostPattern
        /// The requirements for these hosts.
        public let policy: Trust.Policy
        /// The effect of a policy that is not met.
        public let mode: Mode

        /// A rule from its parts.
        public init(_ pattern: Trust.HostPattern, _ policy: Trust.Policy, mode: Mode = .enforce) {
            self.pattern = pattern
            self.policy = policy
            self.mode = mode
        }

        /// `.host("api.example.com", .system)`
        public static func host(_ pattern: String, _ policy: Trust.Policy, mode: Mode = .enforce)
            throws(TrustError)
            -> Trust.Rule
        {
            Trust.Rule(try Trust.HostPattern(pattern), policy, mode: mode)
        }

        /// `.host("**.example.com", pins: ["sha256/…"], backups: ["sha256/…"])`
        public static func host(
            _ pattern: String, pins: [String], backups: [String], mode: Mode = .enforce
        ) throws(TrustError) -> Trust.Rule {
            Trust.Rule(try Trust.HostPattern(pattern), try .pins(pins, backups: backups), mode: mode)
        }
    }
}
