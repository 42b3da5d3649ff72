import CountersignHTTP

/// Everything that `serve` can be told, once and checked. How each setting is spelled is `Setting`'s table.
public struct Configuration: Sendable, Equatable {
    /// The data folder.
    public var data: String
    /// Where clients connect. Port 0 picks a free one.
    public var listen = HostPort(host: "127.0.0.1", port: 8443)
    /// Where administrators connect; nil for nowhere.
    public var admin: HostPort? = HostPort(host: "127.0.0.1", port: 8444)
    /// The backend that verified requests go to; nil for the built-in echo.
    public var upstream: UpstreamURL?
    /// How it is reached.
    public var upstreamSettings = UpstreamSettings()
    /// Where apps and releases are kept; by default in the data folder.
    public var store: StoreLocation
    /// Where the requests that were seen are remembered.
    public var replay = ReplayLocation.memory
    /// The listener's certificate.
    public var tls = TLSMode.automatic
    /// `HOST` or `HOST:PORT`, lower-case, that requests may be addressed to; empty for the listen address and
    /// `localhost` at its port.
    public var authorities: [String] = []
    /// Whom assertions are for (`aud`); nil for the backend's URL.
    public var assertionAudience: String?
    /// Proxies in front whose `X-Forwarded-For` is believed.
    public var trustedProxies: [AddressRange] = []
    /// How other proxies ask whether they may let a request through; nil where none may ask.
    public var decide: DecideDialect?
    /// Fields that only a proxy may say, and that callers may send to the backend all the same. Lower-case.
    public var forwardedCallerFields: Set<String> = []
    /// Whether their connections begin with a PROXY header.
    public var proxyProtocol = ProxyProtocol.off
    /// Event loops; nil for one a core.
    public var workers: Int?
    /// The path under which the authority's own routes stand.
    public var prefix = "/countersign/v1"
    /// How large anything from outside may be.
    public var limits = Limits()
    /// What a request's head may hold beyond what every server reads the same way.
    public var headRules = HeadRules()
    /// What is kept of requests that are done once.
    public var once = OnceSettings()
    /// How long anything may take.
    public var deadlines = Deadlines()
    /// How often passwords may be guessed, and what logins may take.
    public var logins = LoginSettings()
    /// Where the line of each request goes.
    public var log = LogTarget.standardError
    /// Of callers who have proved nothing, how many lines are written.
    var logSampling = RefusalSampler.Settings()

    /// The defaults, for that data folder.
    public init(data: String = ".countersign") {
        self.data = data
        self.store = .default(in: data)
    }
}

/// Where apps, releases and keys are kept.
public enum StoreLocation: Sendable, Equatable {
    /// An SQLite file.
    case sqlite(path: String)

    static func `default`(in data: String) -> StoreLocation { .sqlite(path: "\(data)/countersign.db") }
}

/// Where the requests that were seen are remembered.
public enum ReplayLocation: Sendable, Equatable {
    /// A memory-mapped file in the data folder, for one machine.
    case memory
}

/// The listener's certificate.
public enum TLSMode: Sendable, Equatable {
    /// `DATA/tls`, self-signed, made at the first start.
    case automatic
    /// Plain HTTP: for a listener that only a proxy on the same machine can reach.
    case off
    /// PEM files.
    case files(certificate: String, key: String)
}

/// Where the line of each request goes.
public enum LogTarget: Sendable, Equatable {
    /// Standard error.
    case standardError
    /// Appended to that file.
    case file(String)
    /// Nowhere.
    case off
}
