import CountersignAuthority
import CountersignHTTP
import CountersignReplay
import CountersignSQL
import CountersignWire
import Glibc

extension Configuration.Reading {
    /// All problems of the settings, and of the files and folders that they name. Opens no port, writes
    /// nothing, and connects to no backend, store or replay guard; may ask for the addresses of host names.
    package func check(environment: [String: String]) -> [ConfigurationProblem] {
        var check = ConfigurationCheck(reading: self, environment: environment)
        check.run()
        return check.problems
    }
}

/// The examination behind `serve --check-config`.
private struct ConfigurationCheck {
    private let reading: Configuration.Reading
    private let environment: [String: String]
    private(set) var problems: [ConfigurationProblem]

    private var configuration: Configuration { reading.configuration }

    init(reading: Configuration.Reading, environment: [String: String]) {
        self.reading = reading
        self.environment = environment
        problems = reading.problems
    }

    mutating func run() {
        checkData()
        checkListeners()
        checkTLS()
        checkUpstream()
        checkStores()
        checkLog()
        if configuration.decide != nil, configuration.trustedProxies.isEmpty, isValid("trusted-proxies") {
            report("decide", message: "--decide: expected --trusted-proxies with the proxies that ask")
        }
    }

    /// False if a value of the setting was reported already, so that its default stands in its place.
    private func isValid(_ name: String) -> Bool { !reading.problems.contains { $0.setting == name } }

    private mutating func report(
        _ name: String, severity: ConfigurationProblem.Severity = .error, message: String,
        expected: String? = nil
    ) {
        problems.append(
            ConfigurationProblem(
                severity: severity, message: message, origin: reading.origins[name], setting: name,
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
        guard access(configuration.data, F_OK) == 0 || errno != ENOENT else {
            return checkParent(of: configuration.data, for: "data")
        }
        let path = configuration.data
        let opened = reporting("data") { try DataFolder(path, absence: .fail) }
        guard let folder = opened else { return }
        var status = stat()
        if stat(folder.path, &status) == 0, status.st_mode & 0o077 != 0 {
            let mode = String(status.st_mode & 0o7777, radix: 8)
            report(
                "data", severity: .warning,
                message: "--data: \(folder.path): mode \(mode); serve sets 700", expected: "mode 700")
        }
        let source = MasterKeySource(environment: environment, folder: folder)
        _ = reporting("data") { try source.find() }
        for path in [folder.adminToken, folder.decideSecret] {
            _ = reporting("data") { try KeyFile.read(path) }
        }
    }

    /// Whether a file or folder that is not there can be made.
    private mutating func checkParent(of path: String, for name: String) {
        let parent = path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
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

    /// A file that the server writes: one that it may write, or one that it can make.
    private mutating func checkWritable(_ path: String, for name: String) {
        var status = stat()
        guard stat(path, &status) == 0 else {
            guard errno == ENOENT else {
                return report(
                    name, message: "--\(name): \(path): \(String(cString: strerror(errno)))")
            }
            return checkParent(of: path, for: name)
        }
        guard status.st_mode & S_IFMT != S_IFDIR, access(path, R_OK | W_OK) == 0 else {
            let found = status.st_mode & S_IFMT == S_IFDIR ? EISDIR : errno
            return report(
                name, message: "--\(name): \(path): cannot write: \(String(cString: strerror(found)))",
                expected: "a file that this user may write")
        }
    }

    private mutating func warnOfReadableKey(_ path: String, for name: String) {
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & 0o077 != 0 else { return }
        let mode = String(status.st_mode & 0o777, radix: 8)
        report(
            name, severity: .warning,
            message: "--\(name): \(path): mode \(mode) lets others read this key", expected: "mode 600")
    }

    // MARK: Settings

    private mutating func checkListeners() {
        for (name, address) in [("listen", configuration.listen), ("admin", configuration.admin)] {
            guard isValid(name), let address else { continue }
            _ = reporting(name) { try SocketAddress.resolve(host: address.host, port: Int(address.port)) }
        }
        guard configuration.listen == configuration.admin, configuration.listen.port != 0 else { return }
        report(
            "admin", message: "--admin: \(configuration.listen): is the address of --listen",
            expected: "another port")
    }

    private mutating func checkTLS() {
        guard isValid("tls") else { return }
        switch configuration.tls {
        case .off: break
        case .files(let certificate, let key):
            checkPair(certificate: certificate, key: key, for: "tls") {
                _ = try TLSContext(certificate: certificate, key: key)
            }
        case .automatic:
            let certificate = "\(configuration.data)/tls/certificate.pem"
            let key = "\(configuration.data)/tls/key.pem"
            // Unless both are there, `serve` makes them.
            guard access(certificate, F_OK) == 0, access(key, F_OK) == 0 else { return }
            checkPair(certificate: certificate, key: key, for: "tls") {
                _ = try TLSContext(certificate: certificate, key: key)
            }
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

    private mutating func checkUpstream() {
        let workers = configuration.workers ?? max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
        for (name, message) in configuration.upstreamContradictions(workers: workers)
        where isValid(name) && isValid("upstream") {
            report(name, message: message)
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
                checkWritable(path, for: "store")
            }
        }
        for (_, path) in configuration.store.database?.files ?? [] { checkReadable(path, for: "store") }
        for (_, path) in configuration.replay.redis?.files ?? [] { checkReadable(path, for: "replay") }
    }

    private mutating func checkLog() {
        if case .file(let path) = configuration.log { checkWritable(path, for: "log") }
    }
}
