extension Trust {
    /// What was decided of a server, and why: enough to tell a lost key from an attack.
    public struct Verdict: Error, Sendable, Hashable, CustomStringConvertible {
        /// What came of it.
        public enum Decision: Sendable, Hashable {
            /// The rule is met.
            case accepted
            /// Accepted, though the rule is not met: it only reports.
            case reported
            /// No byte of the request is sent.
            case refused
        }

        /// One thing that is not as it was expected.
        public enum Reason: Sendable, Hashable {
            /// No rule names the host, and others are refused.
            case hostNotNamed
            /// The certificates do not lead to an authority.
            case chain(Trust.PathProblem)
            /// With the names that the certificate is for.
            case wrongHost(certificateIsFor: [String])
            /// None of the expected keys stands in the chain.
            case pinNotMet
            /// The chain leads to none of the pinned certificates.
            case certificateNotPinned(Trust.PathProblem)
            /// A policy without a check of the chain: the server's own certificate is not one of the pinned ones. A pinned
            /// authority does not count there.
            case serverCertificateNotPinned
            /// A policy without a check of the chain: the server's own key is not one of the pinned ones. The pin of an
            /// authority does not count there.
            case serverKeyNotPinned
            /// A custom policy refused the server.
            case custom(name: String, reason: String)
            /// A custom policy was not called, because it comes after the check of the chain, which failed.
            case customNotReached(name: String, Trust.PathProblem)
            /// The authority has revoked the certificate; the server itself brought the proof. Source: RFC 6066 §8.
            case revoked
            /// The server brought a proof of good standing that is none.
            case badStaple(String)
        }

        /// Whom the connection was for.
        public let host: Trust.Host
        /// What came of it.
        public let decision: Decision
        /// Empty where all is as expected.
        public let reasons: [Reason]
        /// The pins of the certificates that were served, the server's own first.
        public let served: [Trust.Pin]
        /// The pins that the rule names; empty where it names none.
        public let expected: [Trust.Pin]

        /// Whether the connection may be used.
        public var isAccepted: Bool { decision != .refused }

        package init(_ evidence: Trust.Evidence, _ decision: Decision, _ reasons: [Reason], expected: [Trust.Pin]) {
            self.init(evidence.host, decision, reasons, served: evidence.served.map(\.pin), expected: expected)
        }

        package init(
            _ host: Trust.Host, _ decision: Decision, _ reasons: [Reason], served: [Trust.Pin], expected: [Trust.Pin]
        ) {
            self.host = host
            self.decision = decision
            self.reasons = reasons
            self.served = served
            self.expected = expected
        }

        /// The same with one more reason, and so refused.
        package func refused(_ reason: Reason) -> Trust.Verdict {
            Trust.Verdict(host, .refused, reasons + [reason], served: served, expected: expected)
        }

        /// One line for a log.
        public var description: String {
            let what =
                switch decision {
                case .accepted: "accepted"
                case .reported: "accepted, and reported"
                case .refused: "refused"
                }
            var text = "\(host): \(what)"
            if !reasons.isEmpty { text += ": " + reasons.map(\.description).joined(separator: "; ") }
            if !expected.isEmpty, decision != .accepted {
                text += "; served \(list(served)), expected \(list(expected))"
            }
            return text
        }

        private func list(_ pins: [Trust.Pin]) -> String {
            pins.isEmpty ? "none" : pins.map(\.description).joined(separator: " ")
        }
    }
}

extension Trust.Verdict.Reason: CustomStringConvertible {
    /// A few words for a log.
    public var description: String {
        switch self {
        case .hostNotNamed: "no rule names this host"
        case .chain(let problem): problem.description
        case .wrongHost(let names):
            "the certificate is for \(names.isEmpty ? "no host" : names.joined(separator: ", "))"
        case .pinNotMet: "none of the pinned keys stands in the verified chain"
        case .certificateNotPinned(let problem): "no chain to a pinned certificate (\(problem))"
        case .serverCertificateNotPinned:
            "the server's own certificate is not pinned, and without a check of the chain no other certificate counts"
        case .serverKeyNotPinned:
            "the server's own key is not pinned, and without a check of the chain no other key counts"
        case .custom(let name, let reason): "\(name): \(reason)"
        case .customNotReached(let name, let problem):
            "the custom check `\(name)` was not called, because the check of the chain before it failed: \(problem)"
        case .revoked: "the certificate is revoked"
        case .badStaple(let detail): "the stapled proof of good standing is none: \(detail)"
        }
    }
}

extension Trust.PathProblem: CustomStringConvertible {
    /// A few words for a log.
    public var description: String {
        switch self {
        case .noCertificate: "the server showed no certificate"
        case .expired: "a certificate has expired"
        case .notYetValid: "a certificate is not valid yet"
        case .noPathToAuthority: "the chain leads to no authority that is trusted here, or lacks a certificate"
        case .selfSigned: "the certificate signs itself"
        case .tooWeak: "a key or a digest in the chain is too weak"
        case .revoked: "a certificate is revoked"
        case .notForServers: "a certificate is not for this use"
        case .badSignature: "a signature in the chain does not hold"
        case .other(let detail): detail
        }
    }
}
