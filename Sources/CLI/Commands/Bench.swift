import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignServer
import CountersignWire

extension Command {
    static let bench = Command(
        words: ["bench"], summary: "measure a verdict of each scheme, in process", options: [.sessions, .json],
        notes: """
            The whole gate: from a parsed request to an admitted caller, the body's digest and the entry in a replay file
            included; sockets and the HTTP parser are not. CPU time of one core, the median of several rounds.

            With --sessions, instead: what so many sessions take in memory and time to read at the start, over a store that
            is made for it in TMPDIR and removed; a token's first and next use; refreshes; how soon a revocation is heeded.
            """
    ) { (run) throws(Fault) in
        if let count = try run.sessionCount() { return try SessionBench.show(count, run) }
        let figures = try Waiting.run { () async throws(Fault) in try await GateBench.measured() }
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
            rows.append(("(meter)", meter.nanoseconds, meter.allocations, "counting one request, 200 releases"))
            return Table.text(
                ["SCHEME", "NS", "ALLOCATIONS", "WHAT"],
                rows.map { row in
                    [row.0, String(Int64(row.1.rounded())), row.2.map { String($0) } ?? "-", row.3]
                })
        }
        return .success
    }
}

extension GateBench.Sample {
    /// Enough for another program to verify the same request.
    fileprivate var json: JSONValue {
        let key = secret.withExposedBytes { Base64.encode($0, .url) }
        return [
            "request": .string(Base64.encode(request.wire.span, .url)), "key_id": .string(keyID.description),
            "secret": .string(key),
        ]
    }
}

extension GateBench {
    fileprivate static func measured() async throws(Fault) -> [Figure] {
        do {
            return try await GateBench().run()
        } catch {
            throw Fault(.failed, "bench: \(error)")
        }
    }
}
