/// Where verified requests go: a scheme, a host and a port. No path, because the target that was signed is the target
/// that is forwarded; no user or password, because a URL ends up in logs.
public struct UpstreamURL: Sendable, Equatable {
    /// Whether the connection to it is TLS.
    public var isTLS: Bool
    /// A name or an address, IPv6 without its brackets.
    public var host: String
    /// The written one, else 80 or 443.
    public var port: UInt16
    /// As it was written, without a final slash.
    public var text: String

    /// From `http://HOST[:PORT]` or `https://HOST[:PORT]`; nil where the text is not that.
    public init?(_ text: String) {
        var text = text
        if text.hasSuffix("/"), !text.hasSuffix("//") { text.removeLast() }
        let isTLS = text.hasPrefix("https://")
        guard isTLS || text.hasPrefix("http://"),
            let (host, port) = HostPort.split(String(text.dropFirst(isTLS ? 8 : 7))), port != 0
        else { return nil }
        self.isTLS = isTLS
        self.host = host
        self.port = port ?? (isTLS ? 443 : 80)
        self.text = text
    }
}
