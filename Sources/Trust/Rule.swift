extension Trust {
    /// Some hosts, and what they have to show.
    public struct Rule: Sendable {
        /// What follows from a policy that is not met.
        public enum Mode: Sendable, Hashable {
            /// The connection is refused before a byte of the request is sent.
            case enforce
            /// It is reported. Accepted is then who meets the policy or the machine's own rule: trying out pins must not
            /// make anything weaker than it was without them. Source: RFC 7469 §2.1.2 has the same split.
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
        public static func host(_ pattern: String, _ policy: Trust.Policy, mode: Mode = .enforce) throws(TrustProblem)
            -> Trust.Rule
        {
            Trust.Rule(try Trust.HostPattern(pattern), policy, mode: mode)
        }

        /// `.host("**.example.com", pins: ["sha256/…"], backups: ["sha256/…"])`
        public static func host(
            _ pattern: String, pins: [String], backups: [String], mode: Mode = .enforce
        ) throws(TrustProblem) -> Trust.Rule {
            Trust.Rule(try Trust.HostPattern(pattern), try .pins(pins, backups: backups), mode: mode)
        }
    }
}
