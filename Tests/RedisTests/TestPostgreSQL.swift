import CountersignAuthority
import CountersignGate
import CountersignMemory
import CountersignReplay
import CountersignSQL
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Foundation
import Testing

/// Databases of a PostgreSQL server of the tests' own, which `Tests/Support/postgres.py` starts, and stops when
/// this process ends.
final class TestPostgreSQL: Sendable {
    /// Nil where no server can be started. With COUNTERSIGN_NO_SKIPS=1, as in CI, that fails the tests.
    static let shared: TestPostgreSQL? = {
        do {
            return try TestPostgreSQL()
        } catch {
            FileHandle.standardError.write(Data("skipped: RedisTests on PostgreSQL: \(error)\n".utf8))
            return nil
        }
    }()

    static let isThere =
        shared != nil || ProcessInfo.processInfo.environment["COUNTERSIGN_NO_SKIPS"] == "1"

    private let folder: String
    private let port: String
    private let count = Locked(0)
    /// Its standard input ends with this process.
    private let input: Pipe

    private init() throws {
        let (words, input) = try TestRedis.start(["postgres.py"])
        guard words.count == 2 else {
            throw TestRedis.Failure(description: "no PostgreSQL server can be started")
        }
        (folder, port, self.input) = (words[0], words[1], input)
    }

    /// Makes an empty database.
    func make() throws -> PostgreSQLAddress {
        let name = count.with { count in
            count += 1
            return "d\(count)"
        }
        try run("CREATE DATABASE \(name)", in: "postgres")
        let socket = folder.split(separator: "/").map { "%2F\($0)" }.joined()
        return try #require(PostgreSQLAddress(url: "postgres://postgres@\(socket):\(port)/\(name)"))
    }

    /// One command in another session; its output.
    @discardableResult
    func run(_ sql: String, in database: String) throws -> String {
        try TestRedis.output(of: [
            "psql", "-h", folder, "-p", port, "-U", "postgres", "-d", database, "-XAtq", "-v",
            "ON_ERROR_STOP=1", "-c", sql,
        ])
    }
}

extension TestDeployment {
    func node(_ address: PostgreSQLAddress, window: Int = 300, clock: any TimeSource = SystemTime()) throws
        -> TestNode
    {
        let notes = notes
        let store = StorePlace.postgreSQL(address).open(
            inspecting: .header, authenticatingBy: deployment.rows)
        let replay = try PostgreSQLReplayGuard(
            address, secret: deployment.replaySecret, store: store,
            retention: .init(window: window, lifetime: 0), patience: 5_000, clock: clock
        ) { note in notes.with { $0.append(note) } }
        return try TestNode(replay)
    }

    func start(_ address: PostgreSQLAddress, window: Int = 300, clock: any TimeSource = SystemTime())
        async throws -> TestNode
    {
        let node = try node(address, window: window, clock: clock)
        try node.replay.start()
        try await node.untilReady()
        return node
    }
}
