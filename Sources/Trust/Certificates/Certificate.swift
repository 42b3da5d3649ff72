extension Trust {
    /// A certificate as it stands, and what trust asks of it: its key and its names. Whether it is genuine is
    /// for the chain to say. Source: RFC 5280 §4.1.
    public struct Certificate: Sendable, Hashable {
        /// A host that a certificate is for. Source: RFC 5280 §4.2.1.6.
        public enum Name: Sendable, Hashable, CustomStringConvertible {
            /// As it is written; may begin with `*.`
            case dns(String)
            /// 4 bytes or 16.
            case address([UInt8])

            /// As a URL would have it.
            public var description: String {
                switch self {
                case .dns(let text): text
                case .address(let bytes): Trust.Host(kind: .address(bytes)).description
                }
            }
        }

        /// The whole of it.
        public let der: [UInt8]
        /// Of its key.
        public let pin: Trust.Pin
        /// The hosts it is for, from its alternative names alone: what stands in the subject is for people.
        /// Source: RFC 9525 §2.
        public let names: [Name]
        /// Whether it names itself as its issuer. Source: RFC 5280 §3.2.
        public let isSelfIssued: Bool

        /// From DER. Refused is what is no certificate of version 1 to 3, and what follows after one.
        public init(der: [UInt8]) throws(TrustError) {
            guard let parts = CertificateParts(der) else {
                throw TrustError("not an X.509 certificate in DER")
            }
            self.der = der
            pin = Trust.Pin(subjectPublicKeyInfo: Array(der[parts.publicKeyInfo]))
            names = parts.names
            isSelfIssued = der[parts.issuer].elementsEqual(der[parts.subject])
        }

        /// Two certificates are the same when all their bytes are.
        public static func == (left: Trust.Certificate, right: Trust.Certificate) -> Bool {
            left.der == right.der
        }

        /// By the bytes.
        public func hash(into hasher: inout Hasher) { hasher.combine(pin) }
    }
}

extension Trust.Certificate {
    /// Whether it is for `host`. Source: RFC 9525 §6.3 (names), §6.4 (addresses).
    public func isFor(_ host: Trust.Host) -> Bool {
        names.contains { name in
            switch (name, host.kind) {
            case (.address(let own), .address(let address)): own == address
            case (.dns(let text), .name(let labels)): Trust.Certificate.name(text, matches: labels)
            default: false
            }
        }
    }

    /// A star stands for the whole of the first label, and for that alone; what follows has two labels at
    /// least, as no authority may vouch for all of a top-level domain.
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
