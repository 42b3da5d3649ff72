import CountersignHTTP
import CountersignWire

/// How the gateway reaches the backend, besides its URL.
public struct UpstreamSettings: Sendable, Equatable {
    /// Certificate chain and private key, as PEM files.
    public struct ClientCertificate: Sendable, Equatable {
        /// The chain, the gateway's own certificate first.
        public var certificate: String
        /// The key of the first certificate.
        public var key: String
    }

    /// Limits for all workers together: open connections to the backend, and requests that wait for one.
    package var limits = UpstreamLimits()
    /// A PEM file with the trust anchors for an https backend; nil for the system's.
    public var authorities: String?
    /// Presented to an https backend that asks for a client certificate.
    public var identity: ClientCertificate?

    /// The defaults.
    public init() {}
}

extension Setting.RestartCondition {
    /// Of `upstream`, and of what only makes sense with the URL that waits.
    static let upstreamWaits = Setting.RestartCondition(purpose: "to go from or to the built-in echo") {
        ($0.upstream == nil) != ($1.upstream == nil)
    }
}

extension Setting {
    static let upstream: [Setting] = [
        Setting(
            "upstream-ca", placeholder: "FILE",
            meaning: "the authorities that may vouch for an https backend (default: the system's)",
            expected: "the path of a PEM file",
            kind: .file, effect: .onReloadExcept(.upstreamWaits),
            set: { $0.upstreamSettings.authorities = $1 },
            show: { .optional($0.upstreamSettings.authorities) }),
        Setting(
            "upstream-certificate", placeholder: "CERT,KEY",
            meaning: "PEM files of a certificate to show to an https backend that asks",
            expected: "CERTIFICATE,KEY",
            effect: .onReloadExcept(.upstreamWaits),
            set: { configuration, text in
                let paths = text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
                guard paths.count == 2, !paths[0].isEmpty, !paths[1].isEmpty else { return nil }
                return configuration.upstreamSettings.identity = .init(certificate: paths[0], key: paths[1])
            },
            show: { .optional($0.upstreamSettings.identity.map { "\($0.certificate),\($0.key)" }) }),
        number(
            "limit-upstream-connections", at: \.upstreamSettings.limits.connections, in: 1...65_536,
            unit: .count, effect: .onReload,
            meaning: "open connections to the backend, divided among the workers"),
        number(
            "limit-upstream-waiting", at: \.upstreamSettings.limits.waiting, in: 0...65_536, unit: .count,
            effect: .onReload,
            meaning:
                "requests that wait while all of them are in use, divided among the workers; "
                + "a further one is refused"
        ),
    ]
}

extension Configuration {
    /// The TLS context for the backend; nil for an http backend. Reads the files at each call.
    func upstreamTLS() throws(OperationalError) -> TLSContext? {
        guard let url = upstream, url.isTLS else { return nil }
        let anchors = upstreamSettings.authorities.map { TLSContext.TrustAnchors.file($0) } ?? .system
        let identity = upstreamSettings.identity.map { (certificate: $0.certificate, key: $0.key) }
        do {
            // Check each setting separately, so that the error names the wrong one.
            if identity != nil { _ = try TLSContext(trusting: anchors) }
        } catch {
            throw OperationalError(.failed, message: "--upstream-ca: \(error.description)")
        }
        do {
            return try TLSContext(trusting: anchors, identity: identity)
        } catch {
            throw OperationalError(
                .failed,
                message: "--\(identity == nil ? "upstream-ca" : "upstream-certificate"): \(error.description)"
            )
        }
    }
}

/// Where verified requests go: a scheme, a host and a port. No path, because the target that was signed is
/// the target that is forwarded; no user or password, because a URL ends up in logs.
public struct UpstreamURL: Sendable, Equatable {
    /// Whether the connection to it is TLS.
    public var isTLS: Bool
    /// A name or an address, IPv6 without its brackets.
    public var host: String
    /// The port in the URL, else 80 or 443.
    public var port: UInt16
    /// The URL as given, without a final slash.
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
