import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignMemory
import CountersignReplay
import CountersignSQL
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Foundation
import Testing
import Waiting

/// A Redis server of a test's own, which `Tests/Support/redis.py` starts, and stops when the test ends.
final class TestRedis: Sendable {
    /// Whether the tests run: where there is a server, or where its absence is a failure.
    static let isThere: Bool = {
        if ProcessInfo.processInfo.environment["COUNTERSIGN_NO_SKIPS"] == "1" { return true }
        if (try? TestRedis()) != nil { return true }
        FileHandle.standardError.write(Data("skipped: ReplayTests: no Redis server can be started\n".utf8))
        return false
    }()

    let port: String
    let pid: pid_t
    /// Its standard input ends with this object.
    private let input: Pipe

    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    init(_ options: [String] = []) throws {
        let (words, input) = try TestRedis.start(["redis.py"] + options)
        guard words.count == 2, let pid = pid_t(words[1]) else {
            throw Failure(description: "no Redis server can be started")
        }
        (port, self.pid, self.input) = (words[0], pid, input)
    }

    /// Starts a program of `Tests/Support`, which runs until its standard input ends; the words of its first
    /// line.
    static func start(_ command: [String]) throws -> ([String], Pipe) {
        let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        let process = Process()
        let (input, output) = (Pipe(), Pipe())
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["python3", "-B", "\(tests.path)/Support/\(command[0])"] + command.dropFirst()
        (process.standardInput, process.standardOutput) = (input, output)
        try process.run()
        var line = Data()
        while !line.contains(10), case let part = output.fileHandleForReading.availableData, !part.isEmpty {
            line += part
        }
        let words = String(decoding: line, as: UTF8.self).split(whereSeparator: \.isWhitespace)
        return (words.map(String.init), input)
    }

    /// Runs a program of the system; its output.
    static func output(of command: [String]) throws -> String {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = command
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        let text = String(decoding: data, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
        guard process.terminationStatus == 0 else { throw Failure(description: "\(command): \(text)") }
        return text
    }

    deinit { try? input.fileHandleForWriting.close() }

    var url: String { "redis://127.0.0.1:\(port)" }

    func signal(_ number: Int32) { kill(pid, number) }

    /// One command; its output.
    @discardableResult
    func call(_ arguments: String...) throws -> String {
        try TestRedis.output(of: ["redis-cli", "-p", port] + arguments)
    }
}

/// A deployment whose store several guards share, as nodes share a database.
final class TestDeployment {
    let deployment: Deployment
    private let folder: String
    let notes = Locked<[String]>([])
    let store: FailingMetaStore

    /// Over a file, or that database.
    init(_ address: PostgreSQLAddress? = nil) throws {
        folder =
            FileManager.default.temporaryDirectory.appendingPathComponent("cs-redis-\(UUID().uuidString)")
            .path
        let data = try DataFolder(folder, absence: .create)
        let place = address.map { StorePlace.postgreSQL($0) } ?? .sqlite(path: data.database)
        deployment = try Deployment(folder: data, store: place.open(), environment: [:])
        store = FailingMetaStore(deployment.store)
    }

    deinit { try? FileManager.default.removeItem(atPath: folder) }

    /// `patience` is in milliseconds. By default it means that something hangs: other tests may leave this
    /// one little of
    /// the processor.
    func node(
        _ url: String, window: Int = 300, lifetime: Int = 0, patience: Int = 60_000,
        clock: any TimeSource = SystemTime(),
        rival: @escaping SharedReplaySettings.Rival = { (_, _) throws(OperationalError) in nil }
    ) throws -> TestNode {
        let address = try #require(RedisAddress(url: url))
        let notes = notes
        let settings = SharedReplaySettings(
            secret: deployment.replaySecret, retention: .init(window: window, lifetime: lifetime),
            rival: rival, patience: patience, clock: clock
        ) { note in notes.with { $0.append(note) } }
        return try TestNode(settings.redisGuard(at: address, store: store))
    }

    func start(_ url: String, window: Int = 300, patience: Int = 60_000) async throws -> TestNode {
        let node = try node(url, window: window, patience: patience)
        try node.replay.start()
        await node.untilReady()
        return node
    }
}

extension TestDeployment {
    func node(_ address: PostgreSQLAddress, window: Int = 300, clock: any TimeSource = SystemTime()) throws
        -> TestNode
    {
        let notes = notes
        let store = StorePlace.postgreSQL(address).open(
            inspecting: .header, authenticatingBy: deployment.rows)
        let settings = SharedReplaySettings(
            secret: deployment.replaySecret, retention: .init(window: window, lifetime: 0),
            patience: 60_000, clock: clock
        ) { note in notes.with { $0.append(note) } }
        return try TestNode(settings.postgreSQLGuard(at: address, store: store))
    }

    func start(_ address: PostgreSQLAddress, window: Int = 300, clock: any TimeSource = SystemTime())
        async throws -> TestNode
    {
        let node = try node(address, window: window, clock: clock)
        try node.replay.start()
        await node.untilReady()
        return node
    }
}

/// The deployment's own values, of a store that can be made to fail.
final class FailingMetaStore: MetaStore {
    let fails = Locked(false)
    private let store: any MetaStore

    init(_ store: any MetaStore) { self.store = store }

    private var base: any MetaStore {
        get throws(OperationalError) {
            if fails.with({ $0 }) { throw OperationalError(.unreachable, message: "the store is down") }
            return store
        }
    }

    func value(of name: MetaName) throws(OperationalError) -> [UInt8]? { try base.value(of: name) }

    func set(_ name: MetaName, to value: [UInt8]) throws(OperationalError) { try base.set(name, to: value) }

    func set(_ name: MetaName, to value: [UInt8], recording draft: AuditDraft) throws(OperationalError) {
        try base.set(name, to: value, recording: draft)
    }

    func exchange(
        _ name: MetaName, from old: [UInt8]?, to new: [UInt8], with others: [(name: MetaName, value: [UInt8])]
    ) throws(OperationalError) -> [UInt8] {
        try base.exchange(name, from: old, to: new, with: others)
    }

    func exchange(
        _ name: MetaName, from old: [UInt8], to new: [UInt8], recording draft: AuditDraft
    ) throws(OperationalError) -> ChangeOutcome {
        try base.exchange(name, from: old, to: new, recording: draft)
    }

    func setIfAbsent(_ name: MetaName, to value: [UInt8]) throws(OperationalError) -> [UInt8] {
        try base.setIfAbsent(name, to: value)
    }

    func remove(_ name: MetaName) throws(OperationalError) { try base.remove(name) }
}

/// One node: a guard and a loop.
final class TestNode: Sendable {
    let replay: any SharedReplayGuard
    let loop: EventLoop

    init(_ replay: any SharedReplayGuard) throws {
        self.replay = replay
        loop = try EventLoop()
        replay.attach(to: loop)
        try loop.start(name: "test")
    }

    func stop() {
        replay.stop()
        loop.stop()
        loop.join()
    }

    /// The refusal's code; nil if the entry was inserted.
    func code(_ entry: ReplayEntry) async -> Refusal.Code? { await refusal(entry)?.code }

    /// Inserted on the loop, as requests are.
    func refusal(_ entry: ReplayEntry) async -> Refusal? {
        await withCheckedContinuation { continuation in
            Task.detached(executorPreference: loop) { [replay] in
                do throws(Refusal) {
                    if try !replay.insertIfReady(entry) { try await replay.insert(entry) }
                    continuation.resume(returning: nil)
                } catch {
                    continuation.resume(returning: error)
                }
            }
        }
    }

    /// Waits until entries are inserted, whatever the floor is.
    func untilReady() async {
        await until("the guard inserts") {
            await self.code(entry("ready \(UUID().uuidString)", created: .far)) == nil
        }
    }
}

extension Int64 {
    /// A creation time above every floor of these tests. The guard does not judge freshness.
    static var far: Int64 { SystemTime().now + 100_000 }
}

func entry(
    _ nonce: String, created: Int64 = SystemTime().now, key: String = "k1",
    scheme: SchemeName = .messageSignatures, now: Int64 = SystemTime().now
) -> ReplayEntry {
    guard let id = KeyID(key), let nonce = Claim.ReplayKey(Array(nonce.utf8).span) else {
        fatalError("the test's own key id and nonce are valid")
    }
    return ReplayEntry(keyID: id, scheme: scheme, replayKey: nonce, created: created, now: now)
}
