extension Trust {
    /// A parsed certificate with its key and its names. Only the chain proves that it is genuine. Source: RFC
    /// 5280 §4.1.
    public struct Certificate: Sendable, Hashable {
        /// A host that a certificate is for. Source: RFC 5280 §4.2.1.6.
        public enum Name: Sendable, Hashable, CustomStringConvertible {
            /// A name as in the certificate; may begin with `*.`
            case dns(String)
            /// 4 or 16 bytes.
            case address([UInt8])

            /// As in a URL.
            public var description: String {
                switch self {
                case .dns(let text): text
                case .address(let bytes): Trust.Host(kind: .address(bytes)).description
                }
            }
        }

        /// The whole certificate in DER.
        public let der: [UInt8]
        /// The pin of the certificate's key.
        public let pin: Trust.Pin
        /// The hosts of the certificate, from its alternative names only: the subject is text for people.
        /// Source: RFC 9525 §2.
        public let names: [Name]
        /// Whether it names itself as its issuer. Source: RFC 5280 §3.2.
        public let isSelfIssued: Bool

        /// Parses DER. Throws if the bytes are not exactly one certificate of version 1 to 3.
        public init(der: [UInt8]) throws(TrustError) {
            guard let parts = CertificateParts(der) else {
                throw TrustError("not an X.509 certificate in DER")
            }
            self.der = der
            pin = Trust.Pin(subjectPublicKeyInfo: Array(der[parts.publicKeyInfo]))
            names = parts.names
            isSelfIssued = der[parts.issuer].elementsEqual(der[parts.subject])
        }

        /// Certificates are equal if all their bytes are.
        public static func == (left: Trust.Certificate, right: Trust.Certificate) -> Bool {
            left.der == right.der
        }

        /// Hashes the bytes.
        public func hash(into hasher: inout Hasher) { hasher.combine(pin) }
    }
}

extension Trust.Certificate {
    /// Whether the certificate is for `host`. Source: RFC 9525 §6.3 (names), §6.4 (addresses).
    public func isFor(_ host: Trust.Host) -> Bool {
        names.contains { name in
            switch (name, host.kind) {
            case (.address(let own), .address(let address)): own == address
            case (.dns(let text), .name(let labels)): Trust.Certificate.name(text, matches: labels)
            default: false
            }
        }
    }

    /// A star replaces the whole first label and nothing else. At least two labels must follow, because no
    /// authority may issue a certificate for a whole top-level domain.
    private static func name(_ text: String, matches labels: [String]) -> Bool {
        if text.hasPrefix("*.") {
            guard let own = Trust.Host.labels(text.dropFirst(2)), own.count >= 2 else { return false }
            return labels.count == own.count + 1 && labels.dropFirst().elementsEqual(own)
        }
        return Trust.Host.labels(Substring(text)) == labels
    }
}

extension Trust.Host {
    init(kind: Kind) { self.kind = kind }
}
