extension Trust {
    /// What a server has to show. The chain of certificates (RFC 5280 §6) and the host's name (RFC 9525 §6)
    /// are checked by all of them, unless the policy is told otherwise by name.
    public struct Policy: Sendable {
        enum Demand: Sendable {
            case nothingMore
            case certificates([Trust.Certificate])
            case pins(PinSet)
            case custom(name: String, @Sendable (Trust.Evidence) -> Opinion)
        }

        enum Kind: Sendable {
            case one(Demand, ChainCheck, NameCheck)
            /// One at least.
            case all([Trust.Policy])
            case anything
        }

        /// What becomes of the chain.
        enum ChainCheck: Sendable { case checked, unchecked }
        /// What becomes of the host's name.
        enum NameCheck: Sendable { case checked, unchecked }

        /// What a policy of your own says.
        public enum Opinion: Sendable {
            /// Nothing against it.
            case accept
            /// With the reason, for people.
            case refuse(String)
        }

        let kind: Kind

        /// The rule of the machine: a chain to one of its authorities, and the right name.
        public static let system = Trust.Policy(.nothingMore)

        /// One of these certificates: the server's own, or one that its chain leads to. They take the place
        /// of the machine's authorities: a certificate that signs itself may be among them.
        public static func certificates(_ certificates: [Trust.Certificate]) throws(TrustError)
            -> Trust.Policy
        {
            guard !certificates.isEmpty else {
                throw TrustError("pinned certificates: expected at least one")
            }
            return Trust.Policy(.certificates(certificates))
        }

        /// A chain to one of the machine's authorities in which one of these keys stands, or a certificate
        /// that signs itself with one of them.
        public static func pins(_ set: PinSet) -> Trust.Policy { Trust.Policy(.pins(set)) }

        /// The same, from texts: `.pins(["sha256/…"], backups: ["sha256/…"])`.
        public static func pins(_ pins: [String], backups: [String]) throws(TrustError) -> Trust.Policy {
            Trust.Policy(.pins(try PinSet(read(pins), backups: read(backups))))
        }

        /// A check of your own, after those of chain and name. It runs in the handshake, so it must not wait
        /// for anything. `name` is what a refusal calls it.
        public static func custom(_ name: String, _ judge: @escaping @Sendable (Trust.Evidence) -> Opinion)
            -> Trust.Policy
        {
            Trust.Policy(.custom(name: name, judge))
        }

        /// Each of them has to agree.
        public static func all(_ policies: [Trust.Policy]) throws(TrustError) -> Trust.Policy {
            guard !policies.isEmpty else { throw TrustError("all of no policies: expected at least one") }
            return Trust.Policy(kind: .all(policies))
        }

        /// No check at all: any server is accepted, and an attacker reads and changes everything. For a test
        /// bench.
        public static let acceptsAnyServerAndSoAnyAttacker = Trust.Policy(kind: .anything)

        /// The same without the check of the chain, and of the certificates' dates. What is pinned must then
        /// be the server's own key or certificate: of the others that it shows, none is proven to be its own.
        public func withoutCheckingTheChain() -> Trust.Policy {
            changed { demand, _, name in .one(demand, .unchecked, name) }
        }

        /// The same without the check of the host's name.
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
    /// Some hosts, and what they have to show.
    public struct Rule: Sendable {
        /// What follows from a policy that is not met.
        public enum Mode: Sendable, Hashable {
            /// The connection is refused before a byte of the request is sent.
            case enforce
            /// A violation is reported. A server is accepted if it meets the policy or the machine's own
            /// rule: trying out pins must not weaken the trust that was there before. Source: RFC 7469 §2.1.2
            /// has the same split.
            case reportOnly
        }

        /// Which hosts.
        public let pattern: Trust.HostPattern
        /// What they have to show.
        public let policy: Trust.Policy
        /// What follows where they do not.
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
