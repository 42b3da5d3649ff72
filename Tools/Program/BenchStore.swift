import CountersignAuthority
import CountersignBenchmarks
import CountersignCLI
import CountersignSQL
import CountersignServer
import CountersignThreads
import CountersignWire
import Foundation
import Glibc

extension Command {
    static let benchStore = Command(
        .benchStore,
        options: [
            .value(
                "in", placeholder: "DIR",
                meaning: "where to make the database that is measured; it is removed (the current folder)"),
            .value("sessions", placeholder: "N", meaning: "how many sessions to read (1000000)"),
            .value("seconds", placeholder: "S", meaning: "how long to write with each number of callers (3)"),
            .json,
        ],
        notes: """
            A refresh is one compare-and-swap on a session's row. Each is durable (fsync) before it counts, \
            and those that wait
            together are made durable together. What is measured is above all the disk: choose the one that \
            you mean. Adding, opening and
            reading are seconds of one core.
            """
    ) { (run) throws(OperationalError) in
        let sessions = try run.count("sessions", among: 512...100_000_000, default: 1_000_000)
        let seconds = try run.count("seconds", among: 1...3_600, default: 3)
        let folder = try BenchFolder(in: run.arguments.value("in") ?? ".")
        defer { folder.remove() }
        let bench = try StoreBench(path: "\(folder.path)/countersign.db")
        let reading = try bench.reading(sessions) { added in
            if added % 100_000 == 0 { run.console.note("\(added) of \(sessions) sessions added") }
        }
        var writes: [StoreBench.WriteFigures] = []
        for callers in StoreBench.callers {
            run.console.note("\(seconds) s with \(callers) callers")
            writes.append(
                try BlockingTask.run { () async throws(OperationalError) in
                    try await bench.writes(callers: callers, for: .seconds(seconds))
                })
        }
        try run.print(["writes": .array(writes.map(\.json)), "sessions": reading.json]) {
            Table.text(
                head: ["CALLERS", "WRITES/S", "MEDIAN MS", "99 % MS"],
                rows: writes.map {
                    [String($0.callers), $0.perSecond.text, $0.median.text, $0.ninetyNinth.text]
                })
                + "\n\(reading.sessions) sessions: \(reading.adding.text) s to add, "
                + "\(reading.opening.text) s to open, "
                + "\(reading.reading.text) s to read"
        }
        return .success
    }
}

extension Invocation {
    func count(_ option: String, among range: ClosedRange<Int>, default fallback: Int)
        throws(OperationalError) -> Int
    {
        guard let text = arguments.value(option) else { return fallback }
        guard let count = Int(text), range.contains(count) else {
            throw OperationalError(
                .usage,
                message:
                    "--\(option) `\(text)`: expected a whole number from \(range.lowerBound) to "
                    + "\(range.upperBound)"
            )
        }
        return count
    }
}

extension StoreBench.WriteFigures {
    fileprivate var json: JSONValue {
        [
            "callers": .integer(Int64(callers)), "per_second": .decimal(perSecond.rounded()),
            "median_ms": .decimal(median), "p99_ms": .decimal(ninetyNinth),
        ]
    }
}

extension StoreBench.ReadFigures {
    fileprivate var json: JSONValue {
        [
            "count": .integer(Int64(sessions)), "adding_s": .decimal(adding), "opening_s": .decimal(opening),
            "reading_s": .decimal(reading),
        ]
    }
}

extension Double {
    /// Two digits behind the point.
    var text: String {
        let hundredths = Int64((self * 100).rounded())
        let rest = hundredths % 100
        return "\(hundredths / 100).\(rest < 10 ? "0" : "")\(rest)"
    }
}

/// A folder that is made for a measurement and removed behind it.
struct BenchFolder {
    let path: String

    init(in parent: String) throws(OperationalError) {
        var template = Array("\(parent)/countersign-bench-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw OperationalError(
                .failed, message: "\(parent): cannot make a folder there: \(String(cString: strerror(errno)))"
            )
        }
        path = template.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? parent }
    }

    /// The files that SQLite makes, and no others.
    func remove() {
        for suffix in ["", "-wal", "-shm"] { unlink("\(path)/countersign.db\(suffix)") }
        rmdir(path)
    }
}

extension Option {
    static let sessions = value(
        "sessions", placeholder: "NUMBER", meaning: "measure so many live sessions instead, 2000 or more")
}

extension Invocation {
    /// Nil where none are to be measured.
    func sessionCount() throws(OperationalError) -> Int? {
        guard let text = arguments.value("sessions") else { return nil }
        guard let count = Int(text), (2_000...10_000_000).contains(count) else {
            throw OperationalError(
                .usage, message: "--sessions `\(text)`: expected a number from 2000 to 10000000")
        }
        return count
    }
}

extension SessionBench {
    static func show(count: Int, run: Invocation) throws(OperationalError) -> ExitStatus {
        let console = run.console
        let figures = try BlockingTask.run { () async throws(OperationalError) in
            let folder = try temporaryFolder()
            defer { try? FileManager.default.removeItem(atPath: folder) }
            let data = try DataFolder("\(folder)/data", absence: .create)
            let deployment = try Deployment(
                folder: data, store: StorePlace.sqlite(path: data.database).open(), environment: [:])
            defer { deployment.store.close() }
            let bench = try SessionBench(deployment) {
                StorePlace.sqlite(path: data.database).open(inspecting: $0, authenticatingBy: deployment.rows)
            }
            return try await bench.run(sessions: count) { console.note("bench: \($0)") }
        }
        try run.print(figures.json) { figures.text }
        return .success
    }

    private static func temporaryFolder() throws(OperationalError) -> String {
        let parent = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        var template = Array("\(parent)/countersign-bench-XXXXXX".utf8CString)
        guard let path = mkdtemp(&template) else { throw Errno.error("\(parent): cannot make a folder") }
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
            head: ["WHAT", "FIGURE"],
            rows: [
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
