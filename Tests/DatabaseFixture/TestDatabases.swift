import CountersignMemory
import CountersignSQL
import Foundation

/// Databases of a PostgreSQL server of the tests' own, which `Tests/Support/postgres.py` starts, and stops
/// when this process ends.
package final class TestDatabases: Sendable {
    /// Nil where no server can be started. With COUNTERSIGN_NO_SKIPS=1, as in CI, that fails the tests.
    package static let shared: TestDatabases? = {
        do {
            return try TestDatabases()
        } catch {
            FileHandle.standardError.write(Data("skipped: tests over PostgreSQL: \(error)\n".utf8))
            return nil
        }
    }()

    /// Whether the tests run: where there is a server, or where its absence is a failure.
    package static let isThere =
        shared != nil || ProcessInfo.processInfo.environment["COUNTERSIGN_NO_SKIPS"] == "1"

    private let folder: String
    private let port: String
    private let count = Locked(0)
    /// Its standard input ends with this process.
    private let input: Pipe

    private struct Failure: Error, CustomStringConvertible {
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
    package func make() throws -> PostgreSQLAddress {
        let name = count.with { count in
            count += 1
            return "d\(count)"
        }
        try run("CREATE DATABASE \(name)", in: "postgres")
        let socket = folder.split(separator: "/").map { "%2F\($0)" }.joined()
        guard let address = PostgreSQLAddress(url: "postgres://postgres@\(socket):\(port)/\(name)") else {
            throw Failure(description: "no address")
        }
        return address
    }

    /// Runs commands in another session; returns their output.
    @discardableResult
    package func run(_ sql: String, in database: String) throws -> String {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [
            "psql", "-h", folder, "-p", port, "-U", "postgres", "-d", database, "-XAtq", "-v",
            "ON_ERROR_STOP=1", "-c", sql,
        ]
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Failure(description: "psql: \(sql)") }
        return String(decoding: data, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    }
}
