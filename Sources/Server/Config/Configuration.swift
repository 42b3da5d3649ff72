import CountersignAuthority
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
    /// How long sessions are served while a shared store is away.
    package var outage = OutagePolicy.grace(seconds: 5)
    /// Where the replay entries are kept.
    public var replay = ReplayLocation.file
    /// The listener's certificate.
    public var tls = TLSMode.automatic
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
    /// Whether requests that need not wait are served without a task.
    package var servingPath = ServingPath.immediate
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
    /// How often passwords may be guessed, and the resources for logins.
    public var logins = LoginSettings()
    /// Where the log line of each request goes.
    public var log = LogTarget.standardError
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
    /// The inputs from which the settings are read.
    package struct Sources: Sendable {
        /// In the order given, by setting name; the last one counts.
        package var flags: [(name: String, value: String)] = []
        package var environment: [String: String] = [:]
        /// The settings file, if one was named: its path, for messages, and its bytes.
        package var file: (path: String, bytes: [UInt8])?

        package init() {}
    }

    /// Flags take precedence over `COUNTERSIGN_*`, then the file, then the defaults. An invalid value throws
    /// a usage error that names the source and the expected format; no value is ignored silently.
    ///
    /// Ignores environment variables that are no setting: Kubernetes gives every pod
    /// `COUNTERSIGN_SERVICE_HOST` and the like if a service is called countersign.
    package init(from sources: Sources) throws(OperationalError) {
        self.init()
        var hasStore = false
        var hasKeyedPlace = false
        func apply(_ setting: Setting, value text: String, at place: String) throws(OperationalError) {
            guard !text.isEmpty, !text.utf8.contains(0), setting.set(&self, text) != nil else {
                throw OperationalError(
                    .usage, message: "\(place): \(Configuration.quoted(text)): expected \(setting.expected)")
            }
            hasStore = hasStore || setting.name == "store"
            hasKeyedPlace = hasKeyedPlace || setting.name == "idempotency"
        }

        for (setting, text) in try Configuration.settings(in: sources.file) {
            try apply(setting, value: text, at: "\(sources.file?.path ?? ""): \(setting.key)")
        }
        for setting in Setting.all {
            guard let text = sources.environment[setting.variable] else { continue }
            try apply(setting, value: text, at: setting.variable)
        }
        for (name, text) in sources.flags {
            guard let setting = Setting.all.first(where: { $0.name == name }) else {
                throw OperationalError(.usage, message: "--\(name): no such flag")
            }
            try apply(setting, value: text, at: setting.flag)
        }
        if !hasStore { store = .default(in: data) }
        guard store.isShared else {
            guard replay.shared != .postgreSQL else {
                throw OperationalError(
                    .usage,
                    message: "--replay postgres: expected --store postgres://…, whose database it uses")
            }
            return
        }
        guard !hasKeyedPlace || idempotency.storage == .store else {
            throw OperationalError(
                .usage,
                message:
                    "--idempotency log: expected store, as the database is PostgreSQL: a copy of a keyed "
                    + "request may arrive at another gateway")
        }
        idempotency.storage = .store
    }

    /// The settings in the file, as text. JSON `null` leaves the default.
    private static func settings(
        in file: (path: String, bytes: [UInt8])?
    ) throws(OperationalError) -> [(setting: Setting, text: String)] {
        guard let file else { return [] }
        let document: JSONDocument
        do {
            document = try JSONReader.read(file.bytes, dialect: .comments)
        } catch {
            throw OperationalError(.usage, message: "\(file.path): not JSON (comments are allowed): \(error)")
        }
        guard let members = document.root.members else {
            throw OperationalError(
                .usage, message: "\(file.path): \(document.root.kind); expected an object with settings")
        }
        var found: [(setting: Setting, text: String)] = []
        for member in members {
            guard let setting = Setting.all.first(where: { $0.key == member.name }) else {
                let known = Setting.all.map(\.key).joined(separator: ", ")
                throw OperationalError(
                    .usage,
                    message: "\(file.path): \(quoted(member.name)): no such setting; known are \(known)")
            }
            guard let text = text(of: member.value, in: document) else {
                throw OperationalError(
                    .usage,
                    message:
                        "\(file.path): \(setting.key): \(member.value.kind); expected \(setting.expected)")
            }
            if let text = text { found.append((setting, text)) }
        }
        return found
    }

    /// A member's value in the form of a flag: a list of strings is joined by commas. The outer nil stands
    /// for a kind of value that no setting has, the inner one for `null`.
    private static func text(of value: JSON, in document: JSONDocument) -> String?? {
        switch value.content {
        case .null: return .some(nil)
        case .string(let text): return text
        case .number: return document.text(of: value)
        case .array(let elements):
            let texts = elements.compactMap(\.string)
            // Written out: with `?:` both branches would merge into the inner optional, and an invalid list
            // would read as null.
            guard texts.count == elements.count else { return nil }
            return texts.joined(separator: ",")
        case .bool, .object: return nil
        }
    }

    /// The given value for an error message: with a URL's password masked, and cut to a bounded length.
    private static func quoted(_ text: String) -> String {
        var shown = text
        if let start = text.firstRange(of: "://"), let at = text[start.upperBound...].lastIndex(of: "@") {
            shown = "\(text[..<start.upperBound])***\(text[at...])"
        }
        let escaped = JSONValue.string(shown.count > 200 ? "\(shown.prefix(200))…" : shown).text
        return "`\(escaped.dropFirst().dropLast())`"
    }

    /// The settings as JSON, in the form of a settings file.
    package var shown: JSONValue {
        .object(Setting.all.map { (name: $0.key, value: $0.show(self)) })
    }
}

extension Configuration {
    /// The data folder, its store and its master key, as `serve` and every administrative command open them.
    package func openDeployment(
        absence: DataFolder.MissingFolderAction, environment: [String: String],
        rootSealer: any SessionRootSealer = MasterKeyRootSealer(),
        acknowledging acknowledgement: ChangeAcknowledgement = .followed,
        consenting consent: MigrationConsent = .expanding, interruptedBy drill: OutageDrill? = nil
    ) throws(OperationalError) -> Deployment {
        try Deployment(
            folder: DataFolder(data, absence: absence),
            store: store.open(acknowledging: acknowledgement, interruptedBy: drill),
            environment: environment, rootSealer: rootSealer, consenting: consent)
    }

    /// A second connection to the deployment's store, for the meter and the writer, so that key look-ups do
    /// not wait while the disk takes their writes.
    func openStore(
        of deployment: Deployment, interruptedBy drill: OutageDrill
    ) throws(OperationalError) -> any Store {
        let opened = store.openAgain(authenticatingBy: deployment.rows, interruptedBy: drill)
        // Opening takes milliseconds, which no request should wait for.
        _ = try opened.revision()
        return opened
    }
}
