import CountersignTestKit
import Glibc
import Synchronization

/// Our gateway as a process of its own, on a data folder of its own, with the bank behind it.
package final class GatewayServer: StagedServer {
    /// What it is started with.
    package struct Plan: Sendable {
        package var binary: Binary
        /// For its data, its log and its certificate.
        package var folder: String
        /// `bank.test:12345`: what apps call it.
        package var authority: String
        /// Where the bank listens.
        package var bank: UInt16
        package var authorities: Authorities
        package var transport: RowProfile.Transport
        /// Faults that it is to have; builds for release have none.
        package var sabotage: [String]
        /// More words of `countersign serve`.
        package var words: [String] = []
    }

    private struct Running {
        var process: ChildProcess?
        var port: UInt16 = 0
        var others: [ChildProcess] = []
    }

    private let plan: Plan
    private let running = Mutex(Running())
    private let data: String
    package let tlsKey: String?

    /// Nothing runs yet: first the operator makes apps and releases, by ``operate(_:typing:)``, then ``start()``.
    package init(_ plan: Plan) throws(StageFault) {
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
            throw StageFault("the bank's certificate: \(error)")
        }
        try Files.write(pem.certificate, to: "\(plan.folder)/certificate.pem")
        try Files.write(pem.key, to: "\(plan.folder)/key.pem")
        tlsKey = String(decoding: pem.key, as: UTF8.self)
    }

    package var port: UInt16 { running.withLock { $0.port } }

    @discardableResult
    package func operate(_ words: [String], typing input: String) async throws(StageFault) -> [UInt8] {
        try await plan.binary.run(words, typing: input, data: data)
    }

    /// What proves that a proxy asks that may: it is there once the gateway has started with `--decide`.
    func decideSecret() throws(StageFault) -> String {
        String(decoding: try Files.read("\(data)/decide-secret").filter { $0 > 0x20 }, as: UTF8.self)
    }

    package func start() async throws(StageFault) {
        let (process, port) = try await launch(on: self.port)
        running.withLock { ($0.process, $0.port) = (process, port) }
    }

    package func retire(_ key: AppKey) async throws -> Retiring {
        try await operate(["release", "retire", key.id, "--at", "now", "--update-url", "https://\(Setting.host)/app"])
        return .done
    }

    package func bringBack(_ key: AppKey) async throws { try await operate(["release", "retire", key.id, "--undo"]) }

    package func restart() async throws {
        await kill()
        try await start()
    }

    package func restartWithoutReplayFile() async throws -> Bool {
        await kill()
        let file = "\(data)/replay"
        guard (try? Files.read(file)) != nil else {
            throw StageFault("\(file): expected the file of requests that were seen")
        }
        try keepCopy()
        Files.remove(file)
        try await start()
        return true
    }

    /// Of all files: the store remembers which file of requests is its own.
    package func restartWithReplayFileFound() async throws {
        await kill()
        for name in try Files.names(in: data) { Files.remove("\(data)/\(name)") }
        for name in try Files.names(in: kept) {
            try Files.write(try Files.read("\(kept)/\(name)"), to: "\(data)/\(name)")
        }
        try await start()
    }

    private var kept: String { "\(data).kept" }

    private func keepCopy() throws(StageFault) {
        try Files.makeFolder(kept)
        for name in try Files.names(in: data) {
            try Files.write(try Files.read("\(data)/\(name)"), to: "\(kept)/\(name)")
        }
    }

    package func secondNode() async throws -> SecondNode {
        do throws(StageFault) {
            let (process, port) = try await launch(on: 0)
            running.withLock { $0.others.append(process) }
            return .listens(on: port)
        } catch {
            // Whatever else keeps it from starting says nothing of requests.
            guard error.description.contains("is in use by another process") else { throw error }
            return .refusedToStart(error.description)
        }
    }

    package func stolenDatabase() async throws -> [String] {
        let loot = "\(plan.folder)/loot"
        try Files.makeFolder(loot)
        var stolen: [String] = []
        for name in try Files.names(in: data) where name.hasPrefix("countersign.db") {
            try Files.write(Files.read("\(data)/\(name)"), to: "\(loot)/\(name)")
            if name == "countersign.db" { stolen.append("\(loot)/\(name)") }
        }
        guard !stolen.isEmpty else { throw StageFault("\(data): expected a database there") }
        return stolen
    }

    package func stop() async {
        let processes = running.withLock { running in
            defer { (running.process, running.others) = (nil, []) }
            return running.others + (running.process.map { [$0] } ?? [])
        }
        for process in processes { _ = await Blocking.run { process.end() } }
    }

    private func kill() async {
        let process = running.withLock { running in
            defer { running.process = nil }
            return running.process
        }
        if let process { _ = await Blocking.run { process.end(SIGKILL) } }
    }

    /// `port` 0 is any: one that was free a moment ago may be another process's by now, and then the next is
    /// tried.
    private func launch(on port: UInt16) async throws(StageFault) -> (ChildProcess, UInt16) {
        guard port == 0 else { return try await launch(listeningOn: port) }
        for _ in 0..<4 {
            do throws(StageFault) {
                return try await launch(listeningOn: try Ports.free())
            } catch {
                guard error.description.contains("Address already in use") else { throw error }
            }
        }
        return try await launch(listeningOn: try Ports.free())
    }

    private func launch(listeningOn port: UInt16) async throws(StageFault) -> (ChildProcess, UInt16) {
        let (plan, errors) = (plan, "\(plan.folder)/complaints-\(port)")
        let words = self.words(port)
        return try await Blocking.run { () throws(StageFault) in
            Files.remove(errors)
            let process = try plan.binary.start(words, errors: errors)
            // An address-sanitizer build on a busy machine takes its time.
            guard let line = process.nextLine(within: 30), line.hasPrefix("listening on "),
                let port = line.split(separator: ":").last.flatMap({ UInt16($0) })
            else {
                process.end(SIGKILL)
                let said = (try? Files.read(errors)).map { String(decoding: $0.suffix(400), as: UTF8.self) } ?? ""
                throw StageFault("countersign serve does not listen: \(said)")
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
            // All victims and attackers of the lab call from one address; the limit by account stays what it is.
            "--login-address", "100000/1s", "--login-work", "100000/1s",
        ]
        words += plan.words
        for fault in plan.sabotage { words += ["--sabotage", fault] }
        return words
    }
}
