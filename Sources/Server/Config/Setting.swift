import CountersignHTTP
import CountersignWire

/// One setting of `serve`: its name, meaning, parser and text form. The table in `Setting.all` is the only
/// description; flags, environment, file, help and `--print-config` all derive from it.
package struct Setting: Sendable {
    /// With hyphens: the flag is `--name`, the variable `COUNTERSIGN_NAME`, the file's key has underscores.
    package var name: String
    /// The placeholder for the value in help: `HOST:PORT`.
    package var value: String
    package var meaning: String
    /// The form of the value, for completion and the reference.
    package var kind: Kind
    /// Whether a reload applies a new value.
    package var effect: Effect
    /// Whether all nodes must have the same value.
    package var scope = Scope.node
    /// Sets the value from text; nil if the text is not what `expected` describes.
    let set: @Sendable (inout Configuration, String) -> Void?
    /// The valid values, for the error message about an invalid one.
    package var expected: String
    let show: @Sendable (Configuration) -> JSONValue

    package var flag: String { "--\(name)" }
    package var variable: String { "COUNTERSIGN_" + String(name.uppercased().map { $0 == "-" ? "_" : $0 }) }
    package var key: String { String(name.map { $0 == "-" ? "_" : $0 }) }

    package static let all: [Setting] =
        places + logSampling + tracing + rules + traffic + upstream + limits + idempotency + logins
        + deadlines
}

extension Setting {
    /// The form of a value.
    package enum Kind: Sendable, Equatable {
        case number(Unit)
        /// One of these words.
        case choice([String])
        /// Text, or one of these words.
        case text([String])
        case file
        case folder
    }

    /// What a number counts.
    package enum Unit: String, Sendable {
        case bytes
        case bytesPerSecond = "bytes a second"
        case seconds
        case count = ""
    }

    /// When a new value of a running server's setting counts.
    package enum Effect: Sendable {
        /// After a reload.
        case onReload
        /// After a restart.
        case onRestart
        /// After a reload, but for those changes that need a restart.
        case onReloadExcept(RestartCondition)
    }

    /// Which gateways over one store must have the same value. A setting that a reload applies belongs to one
    /// node, because nodes compare their values only at the start.
    package enum Scope: String, Sendable {
        /// Each node may have its own.
        case node
        /// All nodes count, remember or name something together by this setting. With `nodes change`, nodes
        /// can start with another value, one after the other.
        case deployment
        /// Like ``deployment``, but the value can change only while no node runs.
        case stoppedDeployment = "deployment, changed while stopped"
    }

    /// The changes of a setting that need a restart although others of it do not.
    package struct RestartCondition: Sendable {
        /// Follows "a reload; a restart" in the reference: `to switch TLS on or off`.
        package var purpose: String
        let holds: @Sendable (_ old: Configuration, _ new: Configuration) -> Bool
    }

    init(
        _ name: String, placeholder value: String, meaning: String, expected: String, kind: Kind = .text([]),
        effect: Effect, scope: Scope = .node,
        set: @escaping @Sendable (inout Configuration, String) -> Void?,
        show: @escaping @Sendable (Configuration) -> JSONValue
    ) {
        self.init(
            name: name, value: value, meaning: meaning, kind: kind, effect: effect, scope: scope, set: set,
            expected: expected, show: show)
    }

    /// Whether the change from `old` to `new` needs a restart.
    func needsRestart(from old: Configuration, to new: Configuration) -> Bool {
        switch effect {
        case .onReload: false
        case .onRestart: true
        case .onReloadExcept(let condition): condition.holds(old, new)
        }
    }

    /// The default value as text. Empty where a setting has no default, or one that depends on the machine;
    /// `meaning` says so, and also which other settings change the default that is here.
    package var fallback: String { Setting.text(of: show(Configuration())) }

    /// The part of the value that all nodes must have in common. Of `authority`, it is the first host, which
    /// assertions name. The other hosts may be names of one node only.
    func sharedText(of configuration: Configuration) -> String {
        name == "authority" ? configuration.authorities.first ?? "" : Setting.text(of: show(configuration))
    }

    /// The same part of a value in text form; nil if the text is invalid.
    package func sharedText(parsing text: String) -> String? {
        var configuration = Configuration()
        guard set(&configuration, text) != nil else { return nil }
        return sharedText(of: configuration)
    }

    /// What a number counts; empty for none.
    package var unit: String { if case .number(let unit) = kind { unit.rawValue } else { "" } }

    /// `a reload`, `a restart`, or both with the changes that need the latter.
    package var effectText: String {
        switch effect {
        case .onReload: "a reload"
        case .onRestart: "a restart"
        case .onReloadExcept(let condition): "a reload; a restart \(condition.purpose)"
        }
    }

    /// A shown value as it is written on the command line; empty for `null`.
    static func text(of value: JSONValue) -> String {
        switch value {
        case .string(let text): text
        case .null: ""
        default: value.text
        }
    }

    /// A whole number within `range`.
    static func number(
        _ name: String, at path: any WritableKeyPath<Configuration, Int> & Sendable,
        in range: ClosedRange<Int>, unit: Unit, effect: Effect, scope: Scope = .node,
        meaning: String
    ) -> Setting {
        Setting(
            name, placeholder: "N", meaning: meaning,
            expected: "a whole number from \(range.lowerBound) to \(range.upperBound)",
            kind: .number(unit), effect: effect, scope: scope,
            set: { configuration, text in
                guard let number = wholeNumber(text, in: range) else { return nil }
                configuration[keyPath: path] = number
                return ()
            },
            show: { .integer(Int64($0[keyPath: path])) })
    }

    static func wholeNumber(_ text: String, in range: ClosedRange<Int>) -> Int? {
        guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int(text),
            range.contains(number)
        else {
            return nil
        }
        return number
    }

    /// Paths and addresses.
    static let places: [Setting] = [
        Setting(
            "data", placeholder: "DIR", meaning: "the data folder", expected: "a path",
            kind: .folder, effect: .onRestart,
            set: { $0.data = $1 }, show: { .string($0.data) }),
        Setting(
            "listen", placeholder: "HOST:PORT", meaning: "where clients connect; port 0 picks a free one",
            expected: "HOST:PORT, IPv6 as [::1]:PORT",
            effect: .onRestart,
            set: { configuration, text in HostPort(text).map { configuration.listen = $0 } },
            show: { .string($0.listen.description) }),
        Setting(
            "admin", placeholder: "HOST:PORT", meaning: "where administrators connect; `off` for nowhere",
            expected: "HOST:PORT, IPv6 as [::1]:PORT, or off",
            kind: .text(["off"]), effect: .onRestart,
            set: { configuration, text in
                if text == "off" { return configuration.admin = nil }
                return HostPort(text).map { configuration.admin = $0 }
            },
            show: { .string($0.admin?.description ?? "off") }),
        Setting(
            "upstream", placeholder: "URL", meaning: "the backend; without one, a built-in echo answers",
            expected: "http://HOST[:PORT] or https://HOST[:PORT], without path, user or query",
            effect: .onReloadExcept(.upstreamWaits),
            set: { configuration, text in UpstreamURL(text).map { configuration.upstream = $0 } },
            show: { .optional($0.upstream?.text) }),
        Setting(
            "store", placeholder: "URL",
            meaning:
                "where apps, releases, accounts and sessions are kept (default: sqlite:DATA/countersign.db)",
            expected: StoreLocation.forms,
            effect: .onRestart,
            set: { configuration, text in StoreLocation(text: text).map { configuration.store = $0 } },
            show: { .string($0.store.text) }),
        Setting(
            "policy-files", placeholder: "DIR",
            meaning:
                "the folder of the files that policies name, such as that of `breached-passwords`; a link "
                + "must lead to a file in it (default: DATA/policy-files)",
            expected: "a path", kind: .folder, effect: .onRestart,
            set: { $0.policyFiles = $1 }, show: { .optional($0.policyFiles) }),
        Setting(
            "outage", placeholder: "RULE",
            meaning:
                "requests while a PostgreSQL store is away: `grace:SECONDS` judges by what is in memory for "
                + "so long (default 5), `closed` refuses at once",
            expected: "closed, or grace:SECONDS of 1 to \(OutagePolicy.mostSeconds)",
            kind: .text(["closed", "grace:5"]), effect: .onRestart,
            set: { configuration, text in OutagePolicy(text).map { configuration.outage = $0 } },
            show: { .string($0.outage.text) }),
        Setting(
            "replay", placeholder: "URL",
            meaning: "where admitted requests are remembered: `file`, in the data folder, `postgres`, in the "
                + "store's database, or a Redis server",
            expected: ReplayLocation.forms,
            kind: .text(["file", "postgres"]), effect: .onRestart, scope: .stoppedDeployment,
            set: { configuration, text in ReplayLocation(text: text).map { configuration.replay = $0 } },
            show: { .string($0.replay.text) }),
        Setting(
            "log", placeholder: "TARGET",
            meaning: "where the line of each request goes: `stderr`, `off` or a file",
            expected: "stderr, off or a path",
            kind: .text(["stderr", "off"]),
            effect: .onReloadExcept(
                .init(purpose: "to switch the log on or off") { ($0.log == .off) != ($1.log == .off) }),
            set: { configuration, text in
                switch text {
                case "stderr": configuration.log = .standardError
                case "off": configuration.log = .off
                default: configuration.log = .file(text)
                }
            },
            show: {
                switch $0.log {
                case .standardError: "stderr"
                case .off: "off"
                case .file(let path): .string(path)
                }
            }),
    ]

    /// Rules by which the gateway serves.
    static let rules: [Setting] = [
        Setting(
            "tls", placeholder: "MODE",
            meaning: "`auto` keeps a certificate of its own in DATA/tls; `off`; or CERT,KEY (PEM files)",
            expected: "auto, off, or CERTIFICATE,KEY",
            kind: .text(["auto", "off"]),
            effect: .onReloadExcept(
                .init(purpose: "to switch TLS on or off") { ($0.tls == .off) != ($1.tls == .off) }),
            set: { configuration, text in
                switch text {
                case "auto": return configuration.tls = .automatic
                case "off": return configuration.tls = .off
                default:
                    let paths = text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
                    guard paths.count == 2, !paths[0].isEmpty, !paths[1].isEmpty else { return nil }
                    return configuration.tls = .files(certificate: paths[0], key: paths[1])
                }
            },
            show: {
                switch $0.tls {
                case .automatic: "auto"
                case .off: "off"
                case .files(let certificate, let key): .string("\(certificate),\(key)")
                }
            }),
        Setting(
            "admin-tls", placeholder: "MODE",
            meaning: "whether the admin listener has TLS, with the certificate of --tls: `on`; `off`, with "
                + "which other machines can call only /health and /ready; or `insecure-off`, with which they "
                + "can send tokens in clear. The console needs `on` for other machines",
            expected: "on, off or insecure-off",
            kind: .choice(AdminTLSMode.allCases.map(\.rawValue)), effect: .onRestart,
            set: { configuration, text in AdminTLSMode(rawValue: text).map { configuration.adminTLS = $0 } },
            show: { .string($0.adminTLS.rawValue) }),
        Setting(
            "admin-hosts", placeholder: "HOST,…",
            meaning: "names by which browsers and programs may call the admin listener, beside addresses, "
                + "localhost and the host of --admin (default: none)",
            expected: "host names without ports, several joined by commas",
            effect: .onReload,
            set: { configuration, text in
                let hosts = text.split(separator: ",", omittingEmptySubsequences: false).map {
                    $0.lowercased()
                }
                guard hosts.allSatisfy({ HostPort.split($0).map { $0.port == nil } ?? false }) else {
                    return nil
                }
                return configuration.adminHosts = hosts
            },
            show: { $0.adminHosts.isEmpty ? .null : .string($0.adminHosts.joined(separator: ",")) }),
        Setting(
            "authority", placeholder: "HOST[:PORT],…",
            meaning: "the hosts it answers for (default: the listen address, and localhost at its port)",
            expected: "HOST or HOST:PORT, several joined by commas",
            effect: .onRestart, scope: .deployment,
            set: { configuration, text in
                let hosts = text.split(separator: ",", omittingEmptySubsequences: false).map {
                    $0.lowercased()
                }
                guard hosts.allSatisfy({ HostPort.split($0) != nil }) else { return nil }
                return configuration.authorities = hosts
            },
            show: { $0.authorities.isEmpty ? .null : .string($0.authorities.joined(separator: ",")) }),
        Setting(
            "assertion-audience", placeholder: "URI",
            meaning: "audience of assertions to the backend (default: the backend's URL)",
            expected: "1 to 256 visible ASCII characters",
            effect: .onReload,
            set: { configuration, text in
                guard (1...256).contains(text.utf8.count), text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
                else {
                    return nil
                }
                return configuration.assertionAudience = text
            },
            show: { .optional($0.assertionAudience) }),
        Setting(
            "trusted-proxies", placeholder: "ADDRESS[/BITS],…",
            meaning: "proxies in front whose X-Forwarded-For says where a client calls from (default: none)",
            expected: "addresses or ranges such as 10.0.0.0/8, several joined by commas",
            effect: .onReload,
            set: { configuration, text in
                let parts = text.split(separator: ",", omittingEmptySubsequences: false)
                let ranges = parts.compactMap { AddressRange(String($0)) }
                guard ranges.count == parts.count else { return nil }
                return configuration.trustedProxies = ranges
            },
            show: {
                $0.trustedProxies.isEmpty
                    ? .null : .string($0.trustedProxies.map(\.description).joined(separator: ","))
            }),
        Setting(
            "decide", placeholder: "DIALECT",
            meaning: "lets the trusted proxies ask at PREFIX/decide whether to let a request through: nginx, "
                + "caddy, traefik, envoy, "
                + "haproxy, or off",
            expected: "nginx, caddy, traefik, envoy, haproxy or off",
            kind: .choice(DecideDialect.allCases.map(\.rawValue) + ["off"]), effect: .onRestart,
            set: { configuration, text in
                if text == "off" { return configuration.decide = nil }
                return DecideDialect(rawValue: text).map { configuration.decide = $0 }
            },
            show: { .string($0.decide?.rawValue ?? "off") }),
        Setting(
            "proxy-protocol", placeholder: "RULE",
            meaning:
                "whether connections of trusted proxies begin with a PROXY header (version 1 or 2): "
                + "`off`, or `require`",
            expected: "off or require",
            kind: .choice(["off", "require"]), effect: .onReload,
            set: { configuration, text in
                ProxyProtocol(rawValue: text).map { configuration.proxyProtocol = $0 }
            },
            show: { .string($0.proxyProtocol.rawValue) }),
        Setting(
            "underscore-fields", placeholder: "RULE",
            meaning:
                "request fields with an underscore in their names: `drop` them, `keep` them or "
                + "`refuse` the request",
            expected: "drop, keep or refuse",
            kind: .choice(["drop", "keep", "refuse"]), effect: .onReload,
            set: { configuration, text in
                HeadRules.UnderscoreFields(rawValue: text).map {
                    configuration.headRules.underscoreFields = $0
                }
            },
            show: { .string($0.headRules.underscoreFields.rawValue) }),
        Setting(
            "allow-methods", placeholder: "METHOD,…",
            meaning: "methods beside those of upper-case letters, such as M-SEARCH; "
                + "TRACE only where it is named (default: none)",
            expected: "method names of up to 32 characters, several joined by commas; not CONNECT",
            effect: .onReload,
            set: { configuration, text in
                let names = text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
                guard names.count <= 32, names.allSatisfy(HeadRules.isExtraMethod) else { return nil }
                return configuration.headRules.extraMethods = names
            },
            show: {
                let names = $0.headRules.extraMethods
                return names.isEmpty ? .null : .string(names.joined(separator: ","))
            }),
        Setting(
            "forward-caller-fields", placeholder: "NAME,…",
            meaning:
                "fields such as X-HTTP-Method-Override that callers may send to the backend (default: none)",
            expected: "names of fields, several joined by commas; none that the gateway writes itself",
            effect: .onReload,
            set: { configuration, text in
                let names = text.lowercased().split(separator: ",", omittingEmptySubsequences: false).map(
                    String.init)
                let areNames = names.allSatisfy { ForbiddenCallerFields.tells(Array($0.utf8).span) }
                guard areNames, ForbiddenCallerFields.written.isDisjoint(with: names) else { return nil }
                return configuration.forwardedCallerFields = Set(names)
            },
            show: {
                let names = $0.forwardedCallerFields
                return names.isEmpty ? .null : .string(names.sorted().joined(separator: ","))
            }),
        Setting(
            "workers", placeholder: "N", meaning: "event loops (default: one a core)",
            expected: "a whole number from 1 to 256",
            kind: .number(.count), effect: .onRestart,
            set: { configuration, text in wholeNumber(text, in: 1...256).map { configuration.workers = $0 } },
            show: { $0.workers.map { .integer(Int64($0)) } ?? .null }),
        Setting(
            "prefix", placeholder: "PATH", meaning: "the path under which the authority's own routes stand",
            expected: "an absolute path of letters, digits, - . _ ~ and /, without a final slash",
            effect: .onRestart, scope: .deployment,
            set: { configuration, text in isPrefix(text) ? configuration.prefix = text : nil },
            show: { .string($0.prefix) }),
    ]

    private static func isPrefix(_ text: String) -> Bool {
        let segments = text.split(separator: "/", omittingEmptySubsequences: false)
        guard segments.count > 1, segments[0].isEmpty else { return false }
        return segments.dropFirst().allSatisfy { segment in
            !segment.isEmpty && segment != "." && segment != ".."
                && segment.utf8.allSatisfy { byte in
                    switch byte {
                    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
                    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."): true
                    case UInt8(ascii: "_"), UInt8(ascii: "~"): true
                    default: false
                    }
                }
        }
    }

    static let limits: [Setting] = [
        number(
            "limit-head", at: \.limits.headBytes, in: 1024...Limits.mostHeadBytes, unit: .bytes,
            effect: .onReload,
            meaning: "bytes of request line and fields"),
        number(
            "limit-target", at: \.limits.targetBytes, in: 256...Limits.mostHeadBytes, unit: .bytes,
            effect: .onReload,
            meaning: "bytes of the request target"),
        number(
            "limit-fields", at: \.limits.fieldCount, in: 8...Limits.mostFields, unit: .count,
            effect: .onReload,
            meaning: "fields of a request"
        ),
        number(
            "limit-held-body", at: \.limits.heldBodyBytes, in: 0...(1 << 28), unit: .bytes, effect: .onReload,
            meaning: "bytes of a body that is verified before anything is forwarded"),
        number(
            "limit-body", at: \.limits.bodyBytes, in: 0...(1 << 46), unit: .bytes, effect: .onReload,
            meaning: "bytes of a body that streams"),
        number(
            "limit-held-bytes", at: \.limits.heldBytes, in: 0...(1 << 40), unit: .bytes, effect: .onReload,
            meaning: "bytes of such bodies at a time; callers without a session have half of it"),
        number(
            "limit-address-held-bytes", at: \.limits.addressHeldBytes, in: 0...(1 << 40), unit: .bytes,
            effect: .onReload,
            meaning: "bytes of such bodies of one address's verified callers, at a time"),
        number(
            "limit-account-held-bytes", at: \.limits.accountHeldBytes, in: 0...(1 << 40), unit: .bytes,
            effect: .onReload,
            meaning: "bytes of such bodies of one account, at a time"),
        number(
            "limit-unproven-bytes", at: \.limits.unprovenBytes, in: 0...(1 << 40), unit: .bytes,
            effect: .onReload,
            meaning: "bytes of bodies that must be held before a signature can be verified, at a time"),
        number(
            "limit-address-unproven-bytes", at: \.limits.addressUnprovenBytes, in: 0...(1 << 40),
            unit: .bytes, effect: .onReload,
            meaning: "bytes of such bodies of one address"),
        number(
            "limit-connections", at: \.limits.connections, in: 1...1_000_000, unit: .count, effect: .onReload,
            meaning: "open client connections"),
        Setting(
            "limit-address-connections", placeholder: "N",
            meaning: "open connections of one address without a session (default: half of all, 16 to 1000)",
            expected: "a whole number from 1 to 1000000",
            kind: .number(.count), effect: .onReload,
            set: { configuration, text in
                wholeNumber(text, in: 1...1_000_000).map { configuration.limits.addressConnections = $0 }
            },
            show: { $0.limits.addressConnections.map { .integer(Int64($0)) } ?? .null }),
        number(
            "limit-account-connections", at: \.limits.accountConnections, in: 1...1_000_000, unit: .count,
            effect: .onReload,
            meaning: "open connections of one account"
        ),
        number(
            "limit-address-requests", at: \.limits.addressRequests, in: 1...1_000_000, unit: .count,
            effect: .onReload,
            meaning: "requests in flight of one address without a session"),
        number(
            "limit-account-requests", at: \.limits.accountRequests, in: 1...1_000_000, unit: .count,
            effect: .onReload,
            meaning: "requests in flight of one account"),
        number(
            "limit-keepalive-requests", at: \.limits.keepAliveRequests, in: 1...1_000_000_000, unit: .count,
            effect: .onReload,
            meaning: "requests on one connection"),
        number(
            "limit-answer-rate", at: \.limits.answerRate, in: 1...(1 << 30), unit: .bytesPerSecond,
            effect: .onReload,
            meaning: "bytes a second that a client must take of an answer that waits for it"),
        number(
            "limit-answer-rate-window", at: \.limits.answerRateWindow, in: 1...3600, unit: .seconds,
            effect: .onReload,
            meaning: "seconds that this is averaged over"),
    ]

    static let deadlines: [Setting] = [
        number(
            "deadline-head", at: \.deadlines.head, in: 1...3600, unit: .seconds, effect: .onReload,
            meaning: "seconds for a request's head"),
        number(
            "deadline-idle", at: \.deadlines.idle, in: 1...86_400, unit: .seconds, effect: .onReload,
            meaning: "seconds between two requests"),
        number(
            "deadline-idle-unproven", at: \.deadlines.idleUnproven, in: 1...86_400, unit: .seconds,
            effect: .onReload,
            meaning:
                "the same where no request was verified, while more than half of the connections are open"),
        number(
            "deadline-connection", at: \.deadlines.connectionAge, in: 1...604_800, unit: .seconds,
            effect: .onReload,
            meaning: "seconds until a connection takes no further request"),
        number(
            "deadline-body", at: \.deadlines.body, in: 1...86_400, unit: .seconds, effect: .onReload,
            meaning: "seconds for a body, and one more for each 32 KiB"),
        number(
            "deadline-stall", at: \.deadlines.stall, in: 1...86_400, unit: .seconds, effect: .onReload,
            meaning: "seconds for a client to take some of an answer"),
        number(
            "deadline-upstream-connect", at: \.deadlines.upstreamConnect, in: 1...3600, unit: .seconds,
            effect: .onReload,
            meaning: "seconds to reach the backend, and to wait for a free connection to it"),
        number(
            "deadline-upstream-answer", at: \.deadlines.upstreamAnswer, in: 1...86_400, unit: .seconds,
            effect: .onReload,
            meaning: "seconds for its answer"),
        number(
            "drain-delay", at: \.drainDelay, in: 0...3600, unit: .seconds, effect: .onReload,
            meaning: "seconds after SIGTERM in which connections are still accepted and `/ready` is 503, so "
                + "that a load balancer sends new ones elsewhere"),
        number(
            "deadline-drain", at: \.deadlines.drain, in: 0...3600, unit: .seconds, effect: .onReload,
            meaning: "seconds for requests in flight, once told to stop"),
    ]
}
