import CountersignMemory
import CountersignSeal
import CountersignTestServer
import CountersignWire
import Glibc

/// The gateway as a child process, with its own data folder, in front of the bank.
package final class GatewayServer: StagedServer {
    /// The settings for starting the gateway.
    package struct Plan: Sendable {
        package var binary: CountersignBinary
        /// For its data, its log and its certificate.
        package var folder: String
        /// `bank.test:12345`: what apps call it.
        package var authority: String
        /// Where the bank listens.
        package var bank: UInt16
        package var authorities: StageCertificates
        package var transport: RowProfile.Transport
        /// The faults to inject; release builds have none.
        package var sabotage: [String]
        /// More arguments of `countersign serve`.
        package var words: [String] = []
    }

    private struct RunState {
        var process: ChildProcess?
        var port: UInt16 = 0
        var others: [ChildProcess] = []
    }

    private let plan: Plan
    private let runState = Locked(RunState())
    private let data: String
    package let tlsKey: String?

    /// Does not start the process: the operator first makes apps and releases with ``operate(_:typing:)``,
    /// then calls ``start()``.
    package init(_ plan: Plan) throws(LabError) {
        self.plan = plan
        data = "\(plan.folder)/data"
        try Files.makeFolder(plan.folder)
        guard case .tls = plan.transport else {
            tlsKey = nil
            return
        }
        let pem: (certificate: [UInt8], key: [UInt8])
        do {
            pem = try plan.authorities.server.pem()
        } catch {
            throw LabError("the bank's certificate: \(error)")
        }
        try Files.write(pem.certificate, to: "\(plan.folder)/certificate.pem")
        try Files.write(pem.key, to: "\(plan.folder)/key.pem")
        tlsKey = String(decoding: pem.key, as: UTF8.self)
    }

    package var port: UInt16 { runState.with { $0.port } }

    @discardableResult
    package func operate(_ words: [String], typing input: String) async throws(LabError) -> [UInt8] {
        try await plan.binary.run(words, typing: input, data: data)
    }

    /// The secret that authorizes a proxy to ask; it exists once the gateway has started with `--decide`.
    func decideSecret() throws(LabError) -> String {
        String(decoding: try Files.read("\(data)/decide-secret").filter { $0 > 0x20 }, as: UTF8.self)
    }

    package func start() async throws(LabError) {
        let (process, port) = try await launch(on: self.port)
        runState.with { ($0.process, $0.port) = (process, port) }
    }

    package func retire(_ key: AppKey) async throws -> RetirementOutcome {
        try await operate([
            "release", "retire", key.id, "--at", "now", "--update-url", "https://\(BankApp.host)/app",
        ])
        return .done
    }

    package func reinstate(_ key: AppKey) async throws {
        try await operate(["release", "retire", key.id, "--undo"])
    }

    package func restart() async throws {
        await kill()
        try await start()
    }

    package func restartWithoutReplayFile() async throws -> Bool {
        await kill()
        try removeReplayFile()
        try await start()
        return true
    }

    /// Not part of its caller, on whose coroutine the optimiser of Swift 6.3.1 crashes otherwise.
    private func removeReplayFile() throws(LabError) {
        let file = "\(data)/replay"
        guard (try? Files.read(file)) != nil else {
            throw LabError("\(file): expected the file of requests that were seen")
        }
        try copyData()
        Files.remove(file)
    }

    /// Restores all files: the store records which file of seen requests belongs to it.
    package func restartRestoringReplayFile() async throws {
        await kill()
        for name in try Files.names(in: data) { Files.remove("\(data)/\(name)") }
        for name in try Files.names(in: copyFolder) {
            try Files.write(try Files.read("\(copyFolder)/\(name)"), to: "\(data)/\(name)")
        }
        try await start()
    }

    private var copyFolder: String { "\(data).kept" }

    private func copyData() throws(LabError) {
        try Files.makeFolder(copyFolder)
        for name in try Files.names(in: data) {
            try Files.write(try Files.read("\(data)/\(name)"), to: "\(copyFolder)/\(name)")
        }
    }

    package func startSecondNode() async throws -> SecondNodeOutcome {
        do {
            let (process, port) = try await launch(on: 0)
            runState.with { $0.others.append(process) }
            return .listens(on: port)
        } catch {
            // Any other start failure is a fault of the lab.
            guard error.description.contains("a data folder takes only one server") else { throw error }
            return .refusedToStart(error.description)
        }
    }

    package func copyDatabase() async throws -> [String] {
        let loot = "\(plan.folder)/loot"
        try Files.makeFolder(loot)
        var stolen: [String] = []
        for name in try Files.names(in: data) where name.hasPrefix("countersign.db") {
            try Files.write(Files.read("\(data)/\(name)"), to: "\(loot)/\(name)")
            if name == "countersign.db" { stolen.append("\(loot)/\(name)") }
        }
        guard !stolen.isEmpty else { throw LabError("\(data): expected a database there") }
        return stolen
    }

    package func stop() async {
        let processes = runState.with { running in
            defer { (running.process, running.others) = (nil, []) }
            return running.others + (running.process.map { [$0] } ?? [])
        }
        for process in processes { _ = await DedicatedThread.run { process.end() } }
    }

    private func kill() async {
        let process = runState.with { running in
            defer { running.process = nil }
            return running.process
        }
        if let process { _ = await DedicatedThread.run { process.end(SIGKILL) } }
    }

    /// `port` 0 chooses a free port; if another process takes it first, the next one is tried.
    private func launch(on port: UInt16) async throws(LabError) -> (ChildProcess, UInt16) {
        guard port == 0 else { return try await launch(listeningOn: port) }
        for _ in 0..<4 {
            do {
                return try await launch(listeningOn: try Ports.free())
            } catch {
                guard error.description.contains("Address already in use") else { throw error }
            }
        }
        return try await launch(listeningOn: try Ports.free())
    }

    private func launch(listeningOn port: UInt16) async throws(LabError) -> (ChildProcess, UInt16) {
        let (plan, errors) = (plan, "\(plan.folder)/complaints-\(port)")
        let words = self.words(port)
        return try await DedicatedThread.run { () throws(LabError) in
            Files.remove(errors)
            let process = try plan.binary.start(words, errors: errors)
            // An address-sanitizer build on a busy machine starts slowly.
            guard let line = process.nextLine(within: 30), line.hasPrefix("listening on "),
                let port = line.split(separator: ":").last.flatMap({ UInt16($0) })
            else {
                process.end(SIGKILL)
                let said =
                    (try? Files.read(errors)).map { String(decoding: $0.suffix(400), as: UTF8.self) } ?? ""
                throw LabError("countersign serve does not listen: \(said)")
            }
            return (process, port)
        }
    }

    private func words(_ port: UInt16) -> [String] {
        let tls =
            tlsKey == nil ? "off" : "\(plan.folder)/certificate.pem,\(plan.folder)/key.pem"
        var words = [
            "serve", "--data", data, "--listen", "127.0.0.1:\(port)", "--admin", "off", "--workers", "2",
            "--authority", plan.authority, "--upstream", "http://127.0.0.1:\(plan.bank)", "--tls", tls,
            "--log", "\(plan.folder)/events.jsonl",
            // All victims and attackers of the lab share one address, so its limits are raised; the limit per
            // account stays.
            "--login-address", "100000/1s", "--login-work", "100000/1s",
        ]
        words += plan.words
        for fault in plan.sabotage { words += ["--sabotage", fault] }
        return words
    }
}

/// How an operator sets up the gateway for a row.
struct GatewaySetup: Sendable {
    let row: RowProfile
    let key: AppKey

    /// What the backend's routes ask for.
    var level: String {
        switch row.scheme {
        // Without a session only the login is open: the bank identifies users by their tokens.
        case .ladder, .tokens, .formMD5, .token, .messageSignaturesWithPassword, .countersign: "session"
        case .apiKey: "signed"
        case .openRoute: "open"
        }
    }

    /// The app's policy, as `KEY=VALUE`.
    var policy: [String] {
        switch row.scheme {
        case .ladder, .tokens, .formMD5:
            return [
                "schemes=form-md5", "legacy-login=on", "legacy-session=authority", "legacy-renewal=on",
                "legacy-salt=\(key.ladder)", "legacy-key=\(key.ladder)",
            ]
        case .token:
            return [
                "schemes=token", "legacy-host=\(BankApp.host)", "legacy-login=on", "legacy-session=authority",
                "legacy-renewal=on", "release-in=header:x-app-version",
            ]
        case .openRoute: return ["legacy-host=\(BankApp.host)", "legacy-session=upstream"]
        case .apiKey(let scheme): return ["schemes=\(scheme.rawValue)"]
        case .messageSignaturesWithPassword: return ["password-login=on"]
        case .countersign: return []
        }
    }

    /// The arguments of `release add` for the app's existing key, whose secret is passed on standard input;
    /// empty where the gateway makes the key.
    var release: [String] {
        switch row.scheme {
        case .ladder, .tokens, .formMD5: imported("form-md5")
        // Without a secret.
        case .token: ["--scheme", "token", "--key-id", key.id]
        case .apiKey(let scheme): imported(scheme.rawValue)
        // The release is for the app's next version, which signs; clients on open routes use none.
        case .openRoute: []
        case .messageSignaturesWithPassword, .countersign: []
        }
    }

    /// The arguments of `account add` before the user's name and number; nil where the gateway has no
    /// accounts.
    var account: [String]? {
        switch row.scheme {
        case .ladder(let rung): ["--legacy", rung.rawValue]
        case .tokens, .token: ["--legacy", "plain-post"]
        case .formMD5: ["--legacy", "md5"]
        case .apiKey, .openRoute: nil
        case .messageSignaturesWithPassword, .countersign: []
        }
    }

    private func imported(_ scheme: String) -> [String] {
        ["--scheme", scheme, "--key-id", key.id, "--secret-stdin"]
    }
}
