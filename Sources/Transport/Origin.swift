import CountersignTrust

/// A server: scheme, host and port. Source: RFC 9110 §4.3.1–4.3.2.
public struct Origin: Sendable, Hashable, CustomStringConvertible {
    /// Whether connections are encrypted.
    public enum Security: Sendable, Hashable {
        /// Encrypted, to a server that the trust accepts.
        case tls
        /// Without TLS. The server is not authenticated, and no trust is evaluated.
        case plaintext
    }

    /// Whether connections are encrypted.
    public let security: Security
    /// The host that the server's certificate must name.
    public let host: Trust.Host
    /// 1 to 65535.
    public let port: UInt16

    /// `port` 0 is the scheme's default: 443 or 80.
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

    /// The value of the `Host` field, without a default port. Source: RFC 9110 §7.2.
    public let authority: String

    /// The host, an IPv6 address in brackets.
    let bracketedHost: String

    /// `https://…` or `http://…`, without a path.
    public var description: String { "\(security == .tls ? "https" : "http")://\(authority)" }
}
