/// What a certificate is to say.
public struct CertificateRequest: Sendable {
    /// What its key is.
    public enum Key: Sendable {
        /// A new one on that curve.
        case p256
        /// Of so many bits.
        case rsa(Int)
        /// That of another certificate, which is how a renewal keeps a pin.
        case of(Issued)
    }

    /// What it may be used for.
    public enum Role: Sendable {
        /// For TLS servers.
        case server
        /// A server's that must not be taken without proof of good standing. Source: RFC 7633 §4.2.
        case serverWithStaple
        /// For signing other certificates.
        case authority
        /// A TLS client's, which a server's is not.
        case client
    }

    /// The subject's common name: for people, and for finding an issuer.
    public var subject: String
    /// Each `DNS:` and a name, or `IP:` and an address, as OpenSSL's configuration has it.
    public var alternativeNames: [String] = []
    /// A new one, unless told otherwise.
    public var key = Key.p256
    /// A server's, unless told otherwise.
    public var role = Role.server
    /// Whole Unix seconds, from the first to the last.
    public var validity: ClosedRange<Int64>

    /// A server's certificate for `hosts`, valid from a day before `time` till a month after.
    public init(_ subject: String, hosts: [String] = [], at time: Int64) {
        self.subject = subject
        validity = (time - 86_400)...(time + 30 * 86_400)
        self.hosts = hosts
    }

    /// The same from names (`*.` may begin them) and addresses as URLs have them.
    public var hosts: [String] {
        get { alternativeNames.map { String($0.drop { $0 != ":" }.dropFirst()) } }
        set {
            alternativeNames = newValue.map { host in
                let isAddress = host.contains(":") || host.allSatisfy { $0.isNumber || $0 == "." }
                return (isAddress ? "IP:" : "DNS:") + host
            }
        }
    }
}
