import CountersignAuthority
import CountersignBenchmarks
import CountersignCLI
import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignServer
import CountersignThreads
import CountersignWire
import Foundation

extension Command {
    static let bench = Command(
        .bench,
        options: [.sessions, .json],
        notes: """
            The whole gate: from a parsed request to an admitted caller, the body's digest and the entry in \
            a replay file
            included; sockets and the HTTP parser are not. CPU time of one core, the median of several rounds.

            With --sessions, instead: what so many sessions take in memory and time to read at the start, \
            over a store that
            is made for it in TMPDIR and removed; a token's first and next use; refreshes; how soon a \
            revocation is heeded.
            """
    ) { (run) throws(OperationalError) in
        if let count = try run.sessionCount() { return try SessionBench.show(count: count, run: run) }
        let figures = try BlockingTask.run { () async throws(OperationalError) in
            try await GateBench.measured()
        }
        let json = figures.map { figure -> JSONValue in
            [
                "scheme": .string(figure.scheme.rawValue), "subject": .string(figure.subject),
                "nanoseconds": .integer(Int64(figure.nanoseconds.rounded())),
                "allocations": figure.allocations.map { .decimal($0) } ?? .null,
                "sample": figure.sample.map { $0.json } ?? .null,
            ]
        }
        let meter = try MeterBench()
        let meterJSON: JSONValue = [
            "nanoseconds": .integer(Int64(meter.nanoseconds.rounded())),
            "allocations": meter.allocations.map { .decimal($0) } ?? .null,
        ]
        try run.print(["figures": .array(json), "meter": meterJSON]) {
            var rows = figures.map { ($0.scheme.rawValue, $0.nanoseconds, $0.allocations, $0.subject) }
            rows.append(
                ("(meter)", meter.nanoseconds, meter.allocations, "counting one request, 200 releases"))
            return Table.text(
                head: ["SCHEME", "NS", "ALLOCATIONS", "WHAT"],
                rows: rows.map { row in
                    [row.0, String(Int64(row.1.rounded())), row.2.map { String($0) } ?? "-", row.3]
                })
        }
        return .success
    }
}

extension GateBench.Sample {
    /// Enough for another program to verify the same request.
    fileprivate var json: JSONValue {
        let key = secret.withExposedBytes { Base64.encode($0, as: .url) }
        return [
            "request": .string(Base64.encode(request.wire.span, as: .url)),
            "key_id": .string(keyID.description),
            "secret": .string(key),
        ]
    }
}

extension GateBench {
    fileprivate static func measured() async throws(OperationalError) -> [Figure] {
        do {
            return try await GateBench().run()
        } catch {
            throw OperationalError(.failed, message: "bench: \(error)")
        }
    }
}

extension Command {
    static let benchVerdict = Command(
        .benchVerdict,
        options: [
            .value(
                "of", placeholder: "KIND",
                meaning: GateBench.Case.allCases.map(\.rawValue).joined(separator: ", ") + " (get)"),
            .value("rounds", placeholder: "N", meaning: "how many rounds of 100 requests (10)"),
        ],
        notes: """
            Prints nothing. Tools/Benchmarks/verdicts.py counts its instructions.
            """
    ) { (run) throws(OperationalError) in
        let rounds = try run.count("rounds", among: 1...100_000, default: 10)
        guard let kind = GateBench.Case(rawValue: run.arguments.value("of") ?? "get") else {
            throw OperationalError(.usage, message: "--of: not a kind of request")
        }
        try BlockingTask.run { () async throws(OperationalError) in
            do {
                try await GateBench().judge(kind, rounds: rounds)
            } catch {
                throw OperationalError(.failed, message: "bench: \(error)")
            }
        }
        return .success
    }
}

extension Command {
    static let benchLogin = Command(
        .benchLogin,
        options: [
            .value(
                "in", placeholder: "DIR",
                meaning: "where to make the deployment that is measured; it is removed (the current folder)"),
            .value("logins", placeholder: "N", meaning: "how many, of an account each (2000)"), .json,
        ],
        notes: """
            Start and finish with the look-ups, the device's signature, and the session in the store, \
            durable (fsync); sockets
            and the gate are not included, nor what clients compute. CPU time of all threads. Bind it to one \
            core (taskset)
            to see what one core does in a second.
            """
    ) { (run) throws(OperationalError) in
        let logins = try run.count("logins", among: 64...1_000_000, default: 2_000)
        let folder = try BenchFolder(in: run.arguments.value("in") ?? ".")
        // Made by us a moment ago: whatever is in it is the deployment's.
        defer { try? FileManager.default.removeItem(atPath: folder.path) }
        let path = folder.path
        let figures = try BlockingTask.run { () async throws(OperationalError) in
            try await LoginBench(in: path, logins: logins).run()
        }
        let total = figures.start + figures.finish + figures.open
        try run.print([
            "logins": .integer(Int64(figures.logins)), "start_us": .decimal(figures.start),
            "finish_us": .decimal(figures.finish), "open_us": .decimal(figures.open),
            "total_us": .decimal(total),
            "per_second": .decimal(figures.perSecond.rounded()),
        ]) {
            """
            \(figures.logins) logins: \(total.text) µs of CPU each (start \(figures.start.text), finish \
            \(figures.finish.text), session \(figures.open.text)), \(Int(figures.perSecond)) a second, durable
            """
        }
        return .success
    }
}

extension Command {
    static let benchReplay = Command(
        .benchReplay,
        options: [
            .value(
                "in", placeholder: "DIR",
                meaning: "where to make the file that is measured; it is removed (the current folder)"),
            .value("entries", placeholder: "N", meaning: "how many entries to insert (2097152)"),
            .value("callers", placeholder: "N", meaning: "how many insert at once (1)"), .json,
        ],
        notes: """
            The second line is the same into a table that does not grow: what takes longer than a millisecond
            there is due to the machine, which ran another process. A split is the work for which a lock is
            held while the table grows; it is in processor time. 2097152 entries take a file of a quarter of a
            GiB. From about 12 million entries on, the table is at its limit of 1 GiB: it splits no more, \
            and refuses
            what falls on a full bucket.
            """
    ) { (run) throws(OperationalError) in
        let entries = try run.count("entries", among: 1_000...(1 << 24), default: 1 << 21)
        let callers = try run.count("callers", among: 1...64, default: 1)
        let folder = try BenchFolder(in: run.arguments.value("in") ?? ".")
        defer { folder.remove() }
        let bench = ReplayBench(path: "\(folder.path)/replay", entries: entries, callers: callers)
        let figures = try BlockingTask.run { () async throws(OperationalError) in try await bench.run() }
        try run.print(.array(figures.map(\.json))) {
            Table.text(
                head: [
                    "INSERTIONS", "NUMBER", "REFUSED", "MEDIAN NS", "99.99 % NS", "LONGEST NS", "ABOVE 1 MS",
                    "LONGEST SPLIT",
                ],
                rows: figures.map {
                    [
                        $0.subject, String($0.insertions), String($0.refused), String($0.median),
                        String($0.almostAll), String($0.longest), String($0.aboveMillisecond),
                        String($0.longestSplit),
                    ]
                })
        }
        return .success
    }
}

extension ReplayBench.Figure {
    fileprivate var json: JSONValue {
        [
            "subject": .string(subject), "insertions": .integer(Int64(insertions)),
            "refused": .integer(Int64(refused)), "median_ns": .integer(Int64(median)),
            "p9999_ns": .integer(Int64(almostAll)),
            "longest_ns": .integer(Int64(longest)), "above_1_ms": .integer(Int64(aboveMillisecond)),
            "capacity": .integer(Int64(capacity)), "longest_split_ns": .integer(Int64(longestSplit)),
            "mean_split_ns": .integer(Int64(meanSplit)),
        ]
    }
}
