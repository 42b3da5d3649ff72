import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignReplay
import CountersignSQL
import CountersignWire

/// All settings of `serve`, checked. `Setting` has the table of names and formats.
public struct Configuration: Sendable, Equatable {
    /// The data folder.
    public var data: String
    /// Where clients connect. Port 0 picks a free one.
    public var listen = HostPort(host: "127.0.0.1", port: 8443)
    /// Where administrators connect; nil for nowhere.
    public var admin: HostPort? = HostPort(host: "127.0.0.1", port: 8444)
    /// The backend that verified requests go to; nil for the built-in echo.
    public var upstream: UpstreamURL?
    /// How the gateway reaches the backend.
    public var upstreamSettings = UpstreamSettings()
    /// Where apps and releases are kept; by default in the data folder.
    public var store: StoreLocation
    /// The folder of the files that policy values name; nil for the default one in the data folder.
    package var policyFiles: String?
    /// How long sessions are served while a shared store is away.
    package var outage = OutagePolicy.grace(seconds: 5)
    /// Where the replay entries are kept.
    public var replay = ReplayLocation.file
    /// The listener's certificate.
    public var tls = TLSMode.automatic
    /// Bytes on the disk for refused requests; 0 for none.
    package var refusalBytes = 1 << 30
    /// Whether the admin listener has TLS.
    package var adminTLS = AdminTLSMode.off
    /// Names, lower-case, by which the admin listener may be called beside addresses, `localhost` and the
    /// host of ``admin``.
    package var adminHosts: [String] = []
    /// `HOST` or `HOST:PORT`, lower-case, that requests may be addressed to; empty for the listen address and
    /// `localhost` at its port.
    public var authorities: [String] = []
    /// The audience of assertions (`aud`); nil for the backend's URL.
    public var assertionAudience: String?
    /// Proxies in front whose `X-Forwarded-For` the gateway trusts.
    public var trustedProxies: [AddressRange] = []
    /// The dialect in which other proxies ask for a decision; nil if no proxy may ask.
    public var decide: DecideDialect?
    /// Fields that are reserved for proxies but that callers may still send to the backend. Lower-case.
    public var forwardedCallerFields: Set<String> = []
    /// Whether connections of trusted proxies begin with a PROXY header.
    public var proxyProtocol = ProxyProtocol.off
    /// Event loops; nil for one per core.
    public var workers: Int?
    /// The path prefix of the authority's own routes.
    public var prefix = "/countersign/v1"
    /// Limits on the size of everything that comes from outside.
    public var limits = Limits()
    /// What a request's head may contain beyond what every server reads the same way.
    public var headRules = HeadRules()
    /// What is kept of requests with an idempotency key.
    public var idempotency = IdempotencySettings()
    /// Time limits.
    public var deadlines = Deadlines()
    /// Seconds for which a stopping server still accepts connections while `/ready` is 503.
    package var drainDelay = 0
    /// How often passwords may be guessed, and the resources for logins.
    public var logins = LoginSettings()
    /// Where the log line of each request goes.
    public var log = LogTarget.standardError
    /// Which addresses are served, and how often.
    public var traffic = TrafficSettings()
    /// Distributed traces.
    public var tracing = TraceSettings()
    /// How many log lines are written about callers that have proved nothing.
    var logSampling = RefusalSampler.Settings()

    /// The defaults for the data folder `data`.
    public init(data: String = ".countersign") {
        self.data = data
        self.store = .default(in: data)
    }
}

/// The listener's certificate.
public enum TLSMode: Sendable, Equatable {
    /// `DATA/tls`, self-signed, made at the first start.
    case automatic
    /// Plain HTTP, for a listener that only a proxy on the same machine can reach.
    case off
    /// PEM files.
    case files(certificate: String, key: String)
}

/// The admin listener's certificate.
package enum AdminTLSMode: String, Sendable, CaseIterable {
    /// Plain HTTP, for programs on this machine. Other machines can call only `/health` and `/ready`.
    case off
    /// Plain HTTP, also for other machines, whose tokens then travel in clear.
    case insecureOff = "insecure-off"
    /// The certificate of the listener for clients.
    case on
}

/// Where the log line of each request goes.
public enum LogTarget: Sendable, Equatable {
    /// Standard error.
    case standardError
    /// Appended to that file.
    case file(String)
    /// Nowhere.
    case off
}

extension Configuration {
    /// The settings that all nodes must have in common, except the replay guard. Nodes compare the server or
    /// file that they reach as the guard, and not its address.
    package var sharedSettings: SharedSettings {
        SharedSettings(
            Dictionary(
                uniqueKeysWithValues: Setting.all.filter { $0.scope == .deployment }.map {
                    ($0.name, $0.sharedText(of: self))
                }))
    }

    /// The PEM files of the listener's certificate and key; nil without TLS. With ``TLSMode/automatic`` they
    /// may not exist yet.
    var tlsFiles: (certificate: String, key: String)? {
        switch tls {
        case .off: nil
        case .automatic: ("\(data)/tls/certificate.pem", "\(data)/tls/key.pem")
        case .files(let certificate, let key): (certificate, key)
        }
    }

    /// The data folder, its store and its master key, as `serve` and every administrative command open them.
    package func openDeployment(
        inspecting inspection: StoreInspection = .everyPage, absence: DataFolder.MissingFolderAction,
        environment: [String: String],
        rootSealer: any SessionRootSealer = MasterKeyRootSealer(),
        acknowledging acknowledgement: ChangeAcknowledgement = .followed,
        consenting consent: MigrationConsent = .expanding, interruptedBy drill: OutageDrill? = nil,
        actor: AuditActor = .thisProcess, clock: DeploymentClock = .judgedOnce(TrustedClock()),
        policyFiles naming: PolicyFiles.Naming = .allowed, accepting copy: AcceptedCopy = .latest
    ) throws(OperationalError) -> Deployment {
        let folder = try DataFolder(data, absence: absence)
        let deployment = try Deployment(
            folder: folder,
            store: store.open(
                inspecting: inspection, acknowledging: acknowledgement, interruptedBy: drill),
            environment: environment, actor: actor, clock: clock.clock, rootSealer: rootSealer,
            consenting: consent,
            policyFiles: PolicyFiles(folder: policyFiles ?? folder.policyFiles, naming: naming),
            accepting: copy)
        if case .judgedOnce(let clock) = clock { try deployment.judge(clock) }
        return deployment
    }

    /// A second connection to the deployment's store, for the meter and the writer, so that key look-ups do
    /// not wait while the disk takes their writes.
    func openStore(
        of deployment: Deployment, interruptedBy drill: OutageDrill
    ) throws(OperationalError) -> any Store {
        let opened = store.openAgain(authenticatingBy: deployment.ownRows, interruptedBy: drill)
        // Opening takes milliseconds, which no request should wait for.
        _ = try opened.revision()
        return opened
    }
}
