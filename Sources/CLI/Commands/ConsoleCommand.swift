import CountersignAuthority
import CountersignServer
import CountersignWire

extension Command {
    static let console = Command(
        words: ["console"], summary: "print a link that signs a browser in to the console, once",
        options: [
            .scopes(meaning: "what the session may do, or several joined by commas (default: everything)"),
            .flag("read-only", meaning: "every scope that only reads"),
            .value("for", placeholder: "TIME", meaning: "how long the session lasts, 5m to 24h (default 8h)"),
            .value(
                "name", placeholder: "NAME",
                meaning:
                    "the operator's name in the audit log (default: your login name)"),
            .value(
                "admin", placeholder: "HOST:PORT",
                meaning:
                    "the running server's admin listener (default: as configured, else 127.0.0.1:8444)"
            ),
            .value(
                "admin-tls", placeholder: "MODE",
                meaning: "whether that listener has TLS, on or off (default: as configured)"),
            .data, .json,
        ],
        notes: """
            The link works once and for \(APIToken.linkSeconds) seconds; the first to open it is signed in.
            The session ends after --for, after \(APIToken.longestPause / 60) minutes without use, by
            signing out, or by `countersign token revoke`; `countersign token list` shows it. Scopes are
            those of `token add`. The console is on the admin listener. From another machine, use a tunnel
            to it (`ssh -L 8444:127.0.0.1:8444 HOST`), or --admin-tls of serve.
            """
    ) { (run) throws(OperationalError) in
        let scopes = try run.consoleScopes()
        let seconds = try run.consoleSeconds()
        let name = try run.operatorName()
        let configuration = try run.consoleConfiguration()
        let code = try run.deployment().addConsoleLink(
            for: name, scopes: scopes, lasting: seconds, at: run.now)
        let link = try configuration.consoleURL + ConsolePath.path("sign-in", query: [("code", code)])
        let json: JSONValue = [
            "link": .string(link), "until": .integer(run.now + APIToken.linkSeconds), "name": .string(name),
            "scopes": .strings(scopes.map(\.rawValue).sorted()), "session_seconds": .integer(seconds),
        ]
        try run.print(json) { link }
        run.console.note("note: open it within \(APIToken.linkSeconds) seconds; it works once")
        return .success
    }
}

extension Invocation {
    fileprivate func consoleScopes() throws(OperationalError) -> Set<APIScope> {
        guard !(arguments.has("scope") && arguments.has("read-only")) else {
            throw OperationalError(.usage, message: "--scope and --read-only: expected one of them")
        }
        if arguments.has("scope") { return try APIScope.set(of: arguments.values("scope")) }
        let all = APIScope.allCases
        return Set(arguments.has("read-only") ? all.filter { $0.rawValue.hasSuffix(":read") } : all)
    }

    fileprivate func consoleSeconds() throws(OperationalError) -> Int64 {
        let text = arguments.value("for") ?? "8h"
        let units: [Character: Int64] = ["m": 60, "h": 3_600]
        guard let unit = text.last.flatMap({ units[$0] }),
            let count = TimeText.unixSeconds(String(text.dropLast())),
            count <= 24 * 60, (300...APIToken.longestConsoleSession).contains(count * unit)
        else { throw OperationalError(.usage, message: "--for `\(text)`: expected 5m to 24h") }
        return count * unit
    }

    fileprivate func operatorName() throws(OperationalError) -> String {
        if let name = arguments.value("name") { return name }
        guard case .user(let id, let name) = AuditActor.thisProcess else { return "operator" }
        return name.flatMap { APIToken.isName($0) ? $0 : nil } ?? "uid-\(id)"
    }

    fileprivate func consoleConfiguration() throws(OperationalError) -> Configuration {
        var configuration = try configuration()
        if let text = arguments.value("admin") {
            guard let address = HostPort(text) else {
                throw OperationalError(.usage, message: "--admin `\(text)`: expected HOST:PORT")
            }
            configuration.admin = address
        }
        if let text = arguments.value("admin-tls") {
            guard let mode = AdminTLSMode(rawValue: text) else {
                throw OperationalError(.usage, message: "--admin-tls `\(text)`: expected on or off")
            }
            configuration.adminTLS = mode
        }
        return configuration
    }
}

extension Configuration {
    /// Where browsers of this machine find the console.
    fileprivate var consoleURL: String {
        get throws(OperationalError) {
            guard let admin else {
                throw OperationalError(
                    .failed, message: "--admin off: the server has no admin listener, and so no console")
            }
            let loopback = ["0.0.0.0": "127.0.0.1", "::": "::1"]
            let address = HostPort(host: loopback[admin.host] ?? admin.host, port: admin.port)
            return "\(adminTLS == .on ? "https" : "http")://\(address)"
        }
    }
}
