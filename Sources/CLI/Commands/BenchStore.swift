import CountersignServer
import CountersignWire
import Glibc

extension Command {
    static let benchStore = Command(
        words: ["bench", "store"], summary: "measure the store: durable writes a second, sessions read at a start",
        options: [
            .value("in", "DIR", "where to make the database that is measured; it is removed (the current folder)"),
            .value("sessions", "N", "how many sessions to read (1000000)"),
            .value("seconds", "S", "how long to write with each number of callers (3)"), .json,
        ],
        notes: """
            A refresh is one compare-and-swap on a session's row. Each is durable (fsync) before it counts, and those that wait
            together are made durable together. What is measured is above all the disk: choose the one that you mean. Adding, opening and
            reading are seconds of one core.
            """
    ) { (run) throws(Fault) in
        let sessions = try run.count("sessions", among: 512...100_000_000, default: 1_000_000)
        let seconds = try run.count("seconds", among: 1...3_600, default: 3)
        let folder = try BenchFolder(in: run.arguments.value("in") ?? ".")
        defer { folder.remove() }
        let bench = try StoreBench(path: "\(folder.path)/countersign.db")
        let reading = try bench.reading(sessions) { added in
            if added % 100_000 == 0 { run.console.note("\(added) of \(sessions) sessions added") }
        }
        var writes: [StoreBench.Writes] = []
        for callers in StoreBench.callers {
            run.console.note("\(seconds) s with \(callers) callers")
            writes.append(
                try Waiting.run { () async throws(Fault) in
                    try await bench.writes(callers: callers, for: .seconds(seconds))
                })
        }
        try run.print(["writes": .array(writes.map(\.json)), "sessions": reading.json]) {
            Table.text(
                ["CALLERS", "WRITES/S", "MEDIAN MS", "99 % MS"],
                writes.map { [String($0.callers), $0.perSecond.text, $0.median.text, $0.ninetyNinth.text] })
                + "\n\(reading.sessions) sessions: \(reading.adding.text) s to add, \(reading.opening.text) s to open, "
                + "\(reading.reading.text) s to read"
        }
        return .success
    }
}

extension Invocation {
    func count(_ option: String, among range: ClosedRange<Int>, default fallback: Int) throws(Fault) -> Int {
        guard let text = arguments.value(option) else { return fallback }
        guard let count = Int(text), range.contains(count) else {
            throw Fault(
                .usage, "--\(option) `\(text)`: expected a whole number from \(range.lowerBound) to \(range.upperBound)"
            )
        }
        return count
    }
}

extension StoreBench.Writes {
    fileprivate var json: JSONValue {
        [
            "callers": .integer(Int64(callers)), "per_second": .decimal(perSecond.rounded()),
            "median_ms": .decimal(median), "p99_ms": .decimal(ninetyNinth),
        ]
    }
}

extension StoreBench.Reading {
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

    init(in parent: String) throws(Fault) {
        var template = Array("\(parent)/countersign-bench-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw Fault(.failed, "\(parent): cannot make a folder there: \(String(cString: strerror(errno)))")
        }
        path = template.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? parent }
    }

    /// The files that SQLite makes, and no others.
    func remove() {
        for suffix in ["", "-wal", "-shm"] { unlink("\(path)/countersign.db\(suffix)") }
        rmdir(path)
    }
}
