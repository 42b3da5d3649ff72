extension Trust {
    /// The facts about a server during the handshake, before a byte of a request is sent.
    public struct Evidence: Sendable {
        /// The host that the connection is made to.
        public let host: Trust.Host
        /// The certificates as the server sent them, its own first. The server need not own the others.
        public let served: [Trust.Certificate]
        /// The time for the check of the certificates' dates; whole Unix seconds.
        public let time: Int64
        private let paths: any Trust.PathValidation

        /// `paths` is the platform's validation of chains.
        public init(
            host: Trust.Host, served: [Trust.Certificate], time: Int64, paths: any Trust.PathValidation
        ) {
            self.host = host
            self.served = served
            self.time = time
            self.paths = paths
        }

        /// The chain from the server's certificate to one of `anchors`, both included, after a check of every
        /// signature, date and constraint. Source: RFC 5280 §6.1.
        public func path(to anchors: Trust.Anchors) throws(Trust.PathError) -> [Trust.Certificate] {
            guard !served.isEmpty else { throw .noCertificate }
            return try paths.path(for: served, to: anchors, at: time)
        }
    }
}

extension Trust {
    /// The certificates that a chain may end in.
    public enum Anchors: Sendable, Hashable {
        /// The system's authorities.
        case system
        /// Only these certificates, whatever their issuer.
        case only([Trust.Certificate])
    }
}

extension Trust {
    /// The platform's validation of chains. Source: RFC 5280 §6.1.
    public protocol PathValidation: Sendable {
        /// The verified chain, the server's own certificate first, the anchor last. `served` is not empty;
        /// `time` is in whole Unix seconds. The chain must be valid for a TLS server, and its keys and
        /// digests sufficiently strong.
        func path(for served: [Trust.Certificate], to anchors: Trust.Anchors, at time: Int64) throws(Trust
            .PathError)
            -> [Trust.Certificate]
    }
}

extension Trust {
    /// Why there is no verified chain.
    public enum PathError: Error, Sendable, Hashable {
        /// The server sent no certificate.
        case noCertificate
        /// A certificate has expired.
        case expired
        /// A certificate is not valid yet.
        case notYetValid
        /// The chain does not lead to an authority: the authority is unknown, or the server omitted an
        /// intermediate certificate.
        case noPathToAuthority
        /// A self-signed certificate that is not trusted.
        case selfSigned
        /// A key or a digest that can be broken.
        case tooWeak
        /// An authority has revoked a certificate.
        case revoked
        /// Issued for something other than a TLS server, or by an issuer that may not issue it.
        case notForServers
        /// A certificate was not signed by the next one's key.
        case badSignature
        /// Anything else, in the platform's words.
        case other(String)
    }
}

extension Trust {
    /// The decision about a server and its reasons, in enough detail to distinguish a lost key from an
    /// attack.
    public struct Verdict: Error, Sendable, Hashable, CustomStringConvertible {
        /// Whether the server is accepted.
        public enum Decision: Sendable, Hashable {
            /// The server meets the rule.
            case accepted
            /// The server does not meet the rule and is accepted, because the rule only reports.
            case reported
            /// The server is refused before a byte of the request is sent.
            case refused
        }

        /// One violation of the rule.
        public enum Reason: Sendable, Hashable {
            /// The host matches no rule, and other hosts are refused.
            case hostNotNamed
            /// The certificates do not lead to an authority.
            case chain(Trust.PathError)
            /// The certificate is for these names, not for the host.
            case wrongHost(certificateIsFor: [String])
            /// The chain contains none of the expected keys.
            case pinNotMet
            /// The chain leads to none of the pinned certificates.
            case certificateNotPinned(Trust.PathError)
            /// The policy does not check the chain, and the server's own certificate is not pinned. Without
            /// that check a pinned authority proves nothing.
            case serverCertificateNotPinned
            /// The policy does not check the chain, and the server's own key is not pinned. Without that
            /// check the pin of an authority proves nothing.
            case serverKeyNotPinned
            /// A custom policy refused the server.
            case custom(name: String, reason: String)
            /// A custom policy was not called, because it comes after the check of the chain, which failed.
            case customNotReached(name: String, Trust.PathError)
            /// The authority has revoked the certificate, as an OCSP response from the server proves. Source:
            /// RFC 6066 §8.
            case revoked
            /// The server's OCSP response is not a valid proof that its certificate is not revoked.
            case badStaple(String)
        }

        /// The host that the connection was made to.
        public let host: Trust.Host
        /// Whether the server is accepted.
        public let decision: Decision
        /// The violations; empty if there is none.
        public let reasons: [Reason]
        /// The pins of the certificates that the server sent, its own first.
        public let served: [Trust.Pin]
        /// The pins in the rule; empty if it has none.
        public let expected: [Trust.Pin]

        /// Whether the connection may be used.
        public var isAccepted: Bool { decision != .refused }

        package init(
            _ evidence: Trust.Evidence, decision: Decision, reasons: [Reason], expected: [Trust.Pin]
        ) {
            self.init(
                evidence.host, decision: decision, reasons: reasons, served: evidence.served.map(\.pin),
                expected: expected)
        }

        package init(
            _ host: Trust.Host, decision: Decision, reasons: [Reason], served: [Trust.Pin],
            expected: [Trust.Pin]
        ) {
            self.host = host
            self.decision = decision
            self.reasons = reasons
            self.served = served
            self.expected = expected
        }

        /// The same verdict, refused for one more reason.
        package func refused(_ reason: Reason) -> Trust.Verdict {
            Trust.Verdict(
                host, decision: .refused, reasons: reasons + [reason], served: served, expected: expected)
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
            "the server's own certificate is not pinned, "
                + "and without a check of the chain no other certificate counts"
        case .serverKeyNotPinned:
            "the server's own key is not pinned, and without a check of the chain no other key counts"
        case .custom(let name, let reason): "\(name): \(reason)"
        case .customNotReached(let name, let problem):
            "the custom check `\(name)` was not called, "
                + "because the check of the chain before it failed: \(problem)"
        case .revoked: "the certificate is revoked"
        case .badStaple(let detail): "the stapled proof of good standing is none: \(detail)"
        }
    }
}

extension Trust.PathError: CustomStringConvertible {
    /// A few words for a log.
    public var description: String {
        switch self {
        case .noCertificate: "the server showed no certificate"
        case .expired: "a certificate has expired"
        case .notYetValid: "a certificate is not valid yet"
        case .noPathToAuthority:
            "the chain leads to no authority that is trusted here, or lacks a certificate"
        case .selfSigned: "the certificate signs itself"
        case .tooWeak: "a key or a digest in the chain is too weak"
        case .revoked: "a certificate is revoked"
        case .notForServers: "a certificate is not for this use"
        case .badSignature: "a signature in the chain does not hold"
        case .other(let detail): detail
        }
    }
}
