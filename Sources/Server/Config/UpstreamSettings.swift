import CountersignHTTP
import CountersignWire

/// How the backend is reached, beside its URL.
public struct UpstreamSettings: Sendable, Equatable {
    /// Certificate chain and private key, as PEM files.
    public struct Identity: Sendable, Equatable {
        /// The chain, our own certificate first.
        public var certificate: String
        /// The key of the first certificate.
        public var key: String
    }

    /// Open connections to the backend, and requests that wait for one, over all workers.
    package var limits = UpstreamLimits()
    /// A PEM file with the authorities that may vouch for an https backend; nil for the system's.
    public var authorities: String?
    /// Shown to an https backend that asks for a client certificate.
    public var identity: Identity?

    /// The defaults.
    public init() {}
}

extension Setting {
    static let upstream: [Setting] = [
        Setting(
            "upstream-ca", "FILE", "the authorities that may vouch for an https backend (default: the system's)",
            expected: "the path of a PEM file",
            set: { $0.upstreamSettings.authorities = $1 },
            show: { .optional($0.upstreamSettings.authorities) }),
        Setting(
            "upstream-certificate", "CERT,KEY", "PEM files of a certificate to show to an https backend that asks",
            expected: "CERTIFICATE,KEY",
            set: { configuration, text in
                let paths = text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
                guard paths.count == 2, !paths[0].isEmpty, !paths[1].isEmpty else { return nil }
                return configuration.upstreamSettings.identity = .init(certificate: paths[0], key: paths[1])
            },
            show: { .optional($0.upstreamSettings.identity.map { "\($0.certificate),\($0.key)" }) }),
        number(
            "limit-upstream-connections", \.upstreamSettings.limits.connections, in: 1...65_536,
            "open connections to the backend, divided among the workers"),
        number(
            "limit-upstream-waiting", \.upstreamSettings.limits.waiting, in: 0...65_536,
            "requests that wait while all of them are in use, divided among the workers; a further one is refused"),
    ]
}

extension Configuration {
    /// The TLS to speak to the backend; nil for an http backend. Reads the files each time.
    func upstreamTLS() throws(Fault) -> TLSContext? {
        guard let url = upstream, url.isTLS else { return nil }
        let anchors = upstreamSettings.authorities.map { TLSContext.TrustAnchors.file($0) } ?? .system
        let identity = upstreamSettings.identity.map { (certificate: $0.certificate, key: $0.key) }
        do throws(HTTPFault) {
            // Each setting by itself, so that the fault names the one that is wrong.
            if identity != nil { _ = try TLSContext(trusting: anchors) }
        } catch {
            throw Fault(.failed, "--upstream-ca: \(error.description)")
        }
        do throws(HTTPFault) {
            return try TLSContext(trusting: anchors, identity: identity)
        } catch {
            throw Fault(.failed, "--\(identity == nil ? "upstream-ca" : "upstream-certificate"): \(error.description)")
        }
    }

    /// Refuses what could not work.
    func checkUpstream(workers: Int) throws(Fault) {
        let limit = upstreamSettings.limits.connections
        guard limit >= workers else {
            throw Fault(
                .usage, "--limit-upstream-connections: \(limit): expected at least one for each of \(workers) workers")
        }
        guard upstream?.isTLS != true else { return }
        for (name, isSet) in [
            ("upstream-ca", upstreamSettings.authorities != nil),
            ("upstream-certificate", upstreamSettings.identity != nil),
        ] where isSet {
            throw Fault(.usage, "--\(name): expected an https:// URL in --upstream")
        }
    }
}
