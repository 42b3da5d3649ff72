import CountersignAuthority
import CountersignSQLite
import CountersignWire
import Foundation
import Glibc

extension Option {
    static let sessions = value("sessions", "NUMBER", "measure so many live sessions instead, 2000 or more")
}

extension Invocation {
    /// Nil where none are to be measured.
    func sessionCount() throws(Fault) -> Int? {
        guard let text = arguments.value("sessions") else { return nil }
        guard let count = Int(text), (2_000...10_000_000).contains(count) else {
            throw Fault(.usage, "--sessions `\(text)`: expected a number from 2000 to 10000000")
        }
        return count
    }
}

extension SessionBench {
    static func show(_ count: Int, _ run: Invocation) throws(Fault) -> ExitStatus {
        let console = run.console
        let figures = try Waiting.run { () async throws(Fault) in
            let folder = try temporaryFolder()
            defer { try? FileManager.default.removeItem(atPath: folder) }
            let data = try DataFolder("\(folder)/data", absence: .makesOne)
            let deployment = try Deployment(folder: data, store: SQLiteStore(path: data.database), environment: [:])
            defer { deployment.store.close() }
            let bench = try SessionBench(deployment) { SQLiteStore(path: data.database) }
            return try await bench.run(sessions: count) { console.note("bench: \($0)") }
        }
        try run.print(figures.json) { figures.text }
        return .success
    }

    private static func temporaryFolder() throws(Fault) -> String {
        let parent = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        var template = Array("\(parent)/countersign-bench-XXXXXX".utf8CString)
        guard let path = mkdtemp(&template) else { throw SystemProblem.fault("\(parent): cannot make a folder") }
        return String(cString: path)
    }
}

extension SessionBench.Figures {
    fileprivate var json: JSONValue {
        [
            "sessions": .integer(Int64(sessions)), "mebibytes": .decimal(mebibytes.rounded()),
            "load_seconds": .decimal(loadSeconds), "load_cpu_seconds": .decimal(loadCPUSeconds),
            "first_use_nanoseconds": .integer(Int64(firstUseNanoseconds)),
            "next_use_nanoseconds": .integer(Int64(nextUseNanoseconds)),
            "refreshes_per_second": .integer(Int64(refreshesPerSecond)),
            "revocation_milliseconds": .decimal(revocationMilliseconds),
        ]
    }

    fileprivate var text: String {
        Table.text(
            ["WHAT", "FIGURE"],
            [
                ["sessions in memory", "\(sessions)"],
                ["resident memory that they take", "\(Int(mebibytes.rounded())) MiB"],
                ["time to look at every page and read them", "\((loadSeconds * 10).rounded() / 10) s"],
                ["the same, of a core's time", "\((loadCPUSeconds * 10).rounded() / 10) s"],
                ["a token's first use, unsealing its key", "\(Int(firstUseNanoseconds)) ns"],
                ["a token's next use", "\(Int(nextUseNanoseconds)) ns"],
                ["refreshes on one core, durable", "\(Int(refreshesPerSecond)) a second"],
                [
                    "from a revocation to the first request refused",
                    "\((revocationMilliseconds * 1e3).rounded() / 1e3) ms",
                ],
            ])
    }
}
