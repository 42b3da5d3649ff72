extension Trust {
    /// What is known of a server in the handshake, before a byte of a request is sent.
    public struct Evidence: Sendable {
        /// Whom the connection is for.
        public let host: Trust.Host
        /// The certificates as the server sent them, its own first. All but the first may be anybody's.
        public let served: [Trust.Certificate]
        /// By which certificates' dates are judged; whole Unix seconds.
        public let time: Int64
        private let paths: any Trust.PathValidation

        /// `paths` is the platform's way of checking chains.
        public init(host: Trust.Host, served: [Trust.Certificate], time: Int64, paths: any Trust.PathValidation) {
            self.host = host
            self.served = served
            self.time = time
            self.paths = paths
        }

        /// The chain from the server's certificate to one of `anchors`, both included; every signature, date and constraint on
        /// it was checked. Source: RFC 5280 §6.1.
        public func path(to anchors: Trust.Anchors) throws(Trust.PathProblem) -> [Trust.Certificate] {
            guard !served.isEmpty else { throw .noCertificate }
            return try paths.path(for: served, to: anchors, at: time)
        }
    }
}

extension Trust {
    /// In whom a chain may end.
    public enum Anchors: Sendable, Hashable {
        /// The machine's authorities.
        case system
        /// These, whoever issued them, and no others.
        case only([Trust.Certificate])
    }
}

extension Trust {
    /// The platform's check of chains. Source: RFC 5280 §6.1.
    public protocol PathValidation: Sendable {
        /// The verified chain, the server's own certificate first, the anchor last. `served` is not empty; `time` is in whole
        /// Unix seconds. The chain must be good for a TLS server, and its keys and digests strong enough for our day.
        func path(for served: [Trust.Certificate], to anchors: Trust.Anchors, at time: Int64) throws(Trust.PathProblem)
            -> [Trust.Certificate]
    }
}

extension Trust {
    /// Why there is no verified chain.
    public enum PathProblem: Error, Sendable, Hashable {
        /// The server showed none.
        case noCertificate
        /// A certificate's time is over.
        case expired
        /// A certificate's time has not come.
        case notYetValid
        /// The chain does not lead to an authority: one is unknown here, or the server left out a certificate between.
        case noPathToAuthority
        /// A certificate that signs itself and that nobody vouches for.
        case selfSigned
        /// A key or a digest that can be broken.
        case tooWeak
        /// An authority took a certificate back.
        case revoked
        /// Made for something other than a TLS server, or by who may not make it.
        case notForServers
        /// A certificate was not signed by the next one's key.
        case badSignature
        /// Anything else, in the platform's words.
        case other(String)
    }
}
