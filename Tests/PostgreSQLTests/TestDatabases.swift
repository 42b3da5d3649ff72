import CountersignMemory
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Foundation
import Testing

@testable import CountersignSQL

/// Databases of a PostgreSQL server of the tests' own, which `Tests/Support/postgres.py` starts, and stops
/// when this process ends.
final class TestDatabases: Sendable {
    /// Nil where no server can be started. With COUNTERSIGN_NO_SKIPS=1, as in CI, that fails the tests.
    static let shared: TestDatabases? = {
        do {
            return try TestDatabases()
        } catch {
            FileHandle.standardError.write(Data("skipped: PostgreSQLTests: \(error)\n".utf8))
            return nil
        }
    }()

    /// Whether the tests run: where there is a server, or where its absence is a failure.
    static let isThere =
        shared != nil || ProcessInfo.processInfo.environment["COUNTERSIGN_NO_SKIPS"] == "1"

    private let folder: String
    private let port: String
    private let count = Locked(0)
    /// Its standard input ends with this process.
    private let input: Pipe

    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    private init() throws {
        let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["python3", "-B", "\(tests.path)/Support/postgres.py"]
        (input, process.standardInput) = { ($0, $0) }(Pipe())
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        var line = Data()
        while !line.contains(10), case let part = output.fileHandleForReading.availableData, !part.isEmpty {
            line += part
        }
        let words = String(decoding: line, as: UTF8.self).split(whereSeparator: \.isWhitespace)
        guard words.count == 2 else { throw Failure(description: "no PostgreSQL server can be started") }
        (folder, port) = (String(words[0]), String(words[1]))
    }

    /// Makes an empty database.
    func make() throws -> PostgreSQLAddress {
        let name = count.with { count in
            count += 1
            return "d\(count)"
        }
        try PostgreSQLConnection(to: address(of: "postgres")).execute("CREATE DATABASE \(name)")
        return try address(of: name)
    }

    private func address(of database: String) throws -> PostgreSQLAddress {
        let socket = folder.split(separator: "/").map { "%2F\($0)" }.joined()
        guard let address = PostgreSQLAddress(url: "postgres://postgres@\(socket):\(port)/\(database)") else {
            throw Failure(description: "no address")
        }
        return address
    }
}
