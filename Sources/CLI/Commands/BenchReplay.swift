import CountersignGate
import CountersignWire

extension Command {
    static let benchReplay = Command(
        words: ["bench", "replay"], summary: "measure the replay table: how long an insertion takes while it grows",
        options: [
            .value("in", "DIR", "where to make the file that is measured; it is removed (the current folder)"),
            .value("entries", "N", "how many entries to insert (2097152)"),
            .value("callers", "N", "how many insert at once (1)"), .json,
        ],
        notes: """
            The second line is the same into a table that does not grow: what takes longer than a millisecond
            there is due to the machine, which ran another process. A split is the work for which a lock is
            held while the table grows; it is in processor time. 2097152 entries take a file of a quarter of a
            GiB. From about 12 million entries on, the table is at its limit of 1 GiB: it splits no more, and refuses
            what falls on a full bucket.
            """
    ) { (run) throws(Fault) in
        let entries = try run.count("entries", among: 1_000...(1 << 24), default: 1 << 21)
        let callers = try run.count("callers", among: 1...64, default: 1)
        let folder = try BenchFolder(in: run.arguments.value("in") ?? ".")
        defer { folder.remove() }
        let bench = ReplayBench(path: "\(folder.path)/replay", entries: entries, callers: callers)
        let figures = try Waiting.run { () async throws(Fault) in try await bench.run() }
        try run.print(.array(figures.map(\.json))) {
            Table.text(
                [
                    "INSERTIONS", "NUMBER", "REFUSED", "MEDIAN NS", "99.99 % NS", "LONGEST NS", "ABOVE 1 MS",
                    "LONGEST SPLIT",
                ],
                figures.map {
                    [
                        $0.subject, String($0.insertions), String($0.refused), String($0.median),
                        String($0.almostAll), String($0.longest), String($0.aboveMillisecond), String($0.longestSplit),
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
