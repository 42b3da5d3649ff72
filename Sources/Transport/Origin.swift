import CountersignTrust

/// A server: scheme, host and port. Source: RFC 9110 §4.3.1–4.3.2.
public struct Origin: Sendable, Hashable, CustomStringConvertible {
    /// How its bytes travel.
    public enum Security: Sendable, Hashable {
        /// Encrypted, to whom a trust accepts.
        case tls
        /// Without TLS. The server is not authenticated, and no trust is evaluated.
        case plaintext
    }

    /// How its bytes travel.
    public let security: Security
    /// Whose certificate is asked for.
    public let host: Trust.Host
    /// 1 to 65535.
    public let port: UInt16

    /// `port` 0 stands for the scheme's own: 443 or 80.
    public init(_ security: Security, host: Trust.Host, port: UInt16 = 0) {
        self.security = security
        self.host = host
        let goesWithoutSaying = port == 0 || port == Origin.defaultPort(security)
        self.port = port == 0 ? Origin.defaultPort(security) : port
        let text = host.description
        bracketedHost = text.contains(":") ? "[\(text)]" : text
        authority = goesWithoutSaying ? bracketedHost : "\(bracketedHost):\(port)"
    }

    private static func defaultPort(_ security: Security) -> UInt16 { security == .tls ? 443 : 80 }

    /// As the `Host` field has it: the port is left out where it goes without saying. Source: RFC 9110 §7.2.
    public let authority: String

    /// IPv6 in its brackets.
    let bracketedHost: String

    /// `https://…` or `http://…`, without a path.
    public var description: String { "\(security == .tls ? "https" : "http")://\(authority)" }
}
