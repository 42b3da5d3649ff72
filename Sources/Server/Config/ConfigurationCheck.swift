import CountersignAuthority
import CountersignHTTP
import CountersignReplay
import CountersignSQL
import CountersignWire
import Glibc

extension Configuration.ReadResult {
    /// All problems of the settings, and of the files and folders that they name. Opens no port, writes
    /// nothing, and connects to no backend, store or replay guard; may ask for the addresses of host names.
    ///
    /// `running` are the settings of the server that is to take these; nil for a start. Its own addresses are
    /// not asked for again, so that a resolver's failure keeps no certificate from being renewed.
    package func check(
        environment: [String: String], running: Configuration? = nil
    ) -> [ConfigurationProblem] {
        var check = ConfigurationCheck(result: self, environment: environment, running: running)
        check.run()
        return check.problems
    }
}

extension Configuration {
    /// Warnings of addresses that other machines reach, each with its remedy. `serve` logs them at its start.
    var exposure: [ConfigurationProblem] {
        var problems: [ConfigurationProblem] = []
        func warn(_ setting: String, message: String, expected: String) {
            problems.append(
                ConfigurationProblem(
                    severity: .warning, message: "--\(setting): \(message)", origin: nil, setting: setting,
                    expected: expected))
        }
        if listen.isOfAllAddresses, authorities.isEmpty {
            warn(
                "listen",
                message: "\(listen): without --authority the gateway refuses requests to every host but "
                    + "\(listen.host) and localhost: name the hosts that apps call, `--authority HOST`",
                expected: "--authority HOST[:PORT],…")
        }
        guard let admin, adminTLS != .on, !ServiceURL.isLoopback(host: admin.host) else { return problems }
        warn(
            "admin",
            message: adminTLS == .insecureOff
                ? "\(admin): with --admin-tls insecure-off the tokens of other machines travel in clear: "
                    + "set `--admin-tls on`"
                : "\(admin): over plain HTTP other machines can call only /health and /ready: set "
                    + "`--admin-tls on`, or an address of this machine",
            expected: "--admin-tls on, or an address of this machine")
        return problems
    }
}

/// The examination behind `serve --check-config`.
private struct ConfigurationCheck {
    private let result: Configuration.ReadResult
    private let environment: [String: String]
    private let running: Configuration?
    private(set) var problems: [ConfigurationProblem]

    private var configuration: Configuration { result.configuration }

    init(result: Configuration.ReadResult, environment: [String: String], running: Configuration?) {
        self.result = result
        self.environment = environment
        self.running = running
        problems = result.problems
    }

    mutating func run() {
        checkData()
        checkListeners()
        checkExposure()
        checkTLS()
        checkContradictions()
        checkUpstream()
        checkStores()
        checkLog()
        checkTraces()
    }

    /// False if a value of the setting was reported already, so that its default stands in its place.
    private func isValid(_ name: String) -> Bool { !result.problems.contains { $0.setting == name } }

    private mutating func report(
        _ name: String, severity: ConfigurationProblem.Severity = .error, message: String,
        expected: String? = nil
    ) {
        problems.append(
            ConfigurationProblem(
                severity: severity, message: message, origin: result.origins[name], setting: name,
                expected: expected))
    }

    private mutating func reporting<Value>(
        _ name: String, body: () throws -> Value?
    ) -> Value? {
        do { return try body() } catch {
            let fault = OperationalError(error, in: "--\(name)").message
            report(name, message: fault.hasPrefix("--") ? fault : "--\(name): \(fault)")
            return nil
        }
    }

    // MARK: Files

    /// The data folder, and the secrets in it, as far as they are there: the first start makes them.
    private mutating func checkData() {
        guard isValid("data") else { return }
        let path = configuration.data
        guard access(path, F_OK) == 0 || errno != ENOENT else {
            return checkParent(of: path, for: "data")
        }
        let opened = reporting("data") { try DataFolder(path, absence: .fail) }
        guard let folder = opened else { return }
        var status = stat()
        if stat(folder.path, &status) == 0, status.st_mode & 0o077 != 0 {
            report(
                "data", severity: .warning,
                message: "--data: \(folder.path): mode \(ConfigurationCheck.mode(status)); serve sets 0700",
                expected: "mode 0700")
        }
        let source = MasterKeySource(environment: environment, folder: folder)
        _ = reporting("data") { try source.find() }
        for path in [folder.adminToken, folder.decideSecret] {
            _ = reporting("data") { try KeyFile.read(path) }
        }
    }

    /// Whether a file or folder that is not there can be made. A folder's path may end with slashes.
    private mutating func checkParent(of path: String, for name: String) {
        var made = path[...]
        if name == "data" { while made.count > 1, made.last == "/" { made.removeLast() } }
        let parent = made.lastIndex(of: "/").map { $0 == made.startIndex ? "/" : String(made[..<$0]) } ?? "."
        guard access(parent, W_OK | X_OK) != 0 else { return }
        report(
            name,
            message: "--\(name): \(path): cannot be made: \(parent): \(String(cString: strerror(errno)))",
            expected: "a folder that this user may write to")
    }

    private mutating func checkReadable(_ path: String, for name: String) {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard file >= 0 else {
            return report(
                name, message: "--\(name): \(path): cannot open: \(String(cString: strerror(errno)))",
                expected: "a file that this user may read")
        }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT != S_IFDIR else {
            return report(
                name, message: "--\(name): \(path): is a folder", expected: "a file that this user may read")
        }
    }

    /// A file that the server writes: one that it can make, or one that it may open with `access`, such as
    /// `R_OK | W_OK`.
    private mutating func checkWritable(_ path: String, for name: String, access mode: Int32) {
        var status = stat()
        guard stat(path, &status) == 0 else {
            guard errno == ENOENT else {
                return report(
                    name, message: "--\(name): \(path): \(String(cString: strerror(errno)))")
            }
            return checkParent(of: path, for: name)
        }
        guard status.st_mode & S_IFMT != S_IFDIR, access(path, mode) == 0 else {
            let found = status.st_mode & S_IFMT == S_IFDIR ? EISDIR : errno
            return report(
                name, message: "--\(name): \(path): cannot write: \(String(cString: strerror(found)))",
                expected: "a file that this user may write")
        }
    }

    private mutating func warnOfReadableKey(_ path: String, for name: String) {
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & 0o077 != 0 else { return }
        report(
            name, severity: .warning,
            message: "--\(name): \(path): mode \(ConfigurationCheck.mode(status)) lets others read this key",
            expected: "mode 0600")
    }

    /// `0755`.
    private static func mode(_ status: stat) -> String { "0\(String(status.st_mode & 0o7777, radix: 8))" }

    // MARK: Settings

    private mutating func checkListeners() {
        for (name, address) in [("listen", configuration.listen), ("admin", configuration.admin)] {
            guard isValid(name), let address, !isRunning(address, name: name) else { continue }
            _ = reporting(name) { try SocketAddress.resolve(host: address.host, port: Int(address.port)) }
        }
        guard configuration.listen == configuration.admin, configuration.listen.port != 0 else { return }
        report(
            "admin", message: "--admin: \(configuration.listen): is the address of --listen",
            expected: "another port")
    }

    /// Invalid addresses are already reported as problems. A running server reported its own addresses at its
    /// start.
    private mutating func checkExposure() {
        for problem in configuration.exposure {
            guard let name = problem.setting, !problems.contains(where: { $0.setting == name }),
                let address = name == "listen" ? configuration.listen : configuration.admin,
                !isRunning(address, name: name)
            else { continue }
            problems.append(problem)
        }
    }

    private func isRunning(_ address: HostPort, name: String) -> Bool {
        guard let running else { return false }
        return address == (name == "listen" ? running.listen : running.admin)
    }

    private mutating func checkTLS() {
        guard isValid("tls"), let files = configuration.tlsFiles else { return }
        if configuration.tls == .automatic {
            // Unless both are there, `serve` makes them.
            guard access(files.certificate, F_OK) == 0, access(files.key, F_OK) == 0 else { return }
        }
        checkPair(certificate: files.certificate, key: files.key, for: "tls") {
            _ = try TLSContext(certificate: files.certificate, key: files.key)
        }
    }

    /// Reports unreadable files each; only a pair that is readable is parsed and compared.
    private mutating func checkPair(
        certificate: String, key: String, for name: String, parse: () throws -> Void
    ) {
        let count = problems.count
        checkReadable(certificate, for: name)
        checkReadable(key, for: name)
        guard problems.count == count else { return }
        _ = reporting(name) { try parse() }
        warnOfReadableKey(key, for: name)
    }

    private mutating func checkContradictions() {
        let workers = configuration.workers ?? max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
        for found in configuration.contradictions(workers: workers)
        where isValid(found.name) && isValid(found.other) {
            report(found.name, message: found.message)
        }
    }

    private mutating func checkUpstream() {
        if let url = configuration.upstream, isValid("upstream"), running?.upstream != url,
            (try? SocketAddress.resolve(host: url.host, port: Int(url.port))) == nil
        {
            report(
                "upstream", severity: .warning,
                message: "--upstream: \(url.host): \(UpstreamTarget.unresolved)",
                expected: "a name that this machine resolves")
        }
        let settings = configuration.upstreamSettings
        if let path = settings.authorities {
            let count = problems.count
            checkReadable(path, for: "upstream-ca")
            if problems.count == count {
                _ = reporting("upstream-ca") { try TLSContext(trusting: .file(path)) }
            }
        }
        if let identity = settings.identity {
            checkPair(certificate: identity.certificate, key: identity.key, for: "upstream-certificate") {
                _ = try TLSContext(
                    trusting: .system, identity: (certificate: identity.certificate, key: identity.key))
            }
        }
    }

    private mutating func checkStores() {
        if let path = configuration.store.file, isValid("store"), isValid("data") {
            // In the data folder it is made with the folder.
            if path != "\(configuration.data)/countersign.db" || access(path, F_OK) == 0 {
                checkWritable(path, for: "store", access: R_OK | W_OK)
            }
        }
        for (_, path) in configuration.store.database?.files ?? [] { checkReadable(path, for: "store") }
        for (_, path) in configuration.replay.redis?.files ?? [] { checkReadable(path, for: "replay") }
    }

    private mutating func checkTraces() {
        let tracing = configuration.tracing
        _ = reporting("trace-export-fields") { try tracing.readFields() }
    }

    private mutating func checkLog() {
        guard case .file(let path) = configuration.log else { return }
        checkWritable(path, for: "log", access: W_OK)
        // Not opened: its reader, if it has one, would take the end of this process for the end of the log.
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFIFO else { return }
        report(
            "log", severity: .warning,
            message: "--log: \(path): a named pipe; serve does not start while no program reads from it",
            expected: "a file, or a pipe that has a reader")
    }
}
