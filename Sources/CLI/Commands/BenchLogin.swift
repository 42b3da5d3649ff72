import CountersignServer
import CountersignWire
import Foundation

extension Command {
    static let benchLogin = Command(
        words: ["bench", "login"],
        summary: "measure what OPAQUE logins cost the server, and how many it does in a second",
        options: [
            .value("in", "DIR", "where to make the deployment that is measured; it is removed (the current folder)"),
            .value("logins", "N", "how many, of an account each (2000)"), .json,
        ],
        notes: """
            Start and finish with the look-ups, the device's signature, and the session in the store, durable (fsync); sockets
            and the gate are not included, nor what clients compute. CPU time of all threads. Bind it to one core (taskset)
            to see what one core does in a second.
            """
    ) { (run) throws(Fault) in
        let logins = try run.count("logins", among: 64...1_000_000, default: 2_000)
        let folder = try BenchFolder(in: run.arguments.value("in") ?? ".")
        // Made by us a moment ago: whatever is in it is the deployment's.
        defer { try? FileManager.default.removeItem(atPath: folder.path) }
        let path = folder.path
        let figures = try Waiting.run { () async throws(Fault) in
            try await LoginBench(in: path, logins: logins).run()
        }
        let total = figures.start + figures.finish + figures.open
        try run.print([
            "logins": .integer(Int64(figures.logins)), "start_us": .decimal(figures.start),
            "finish_us": .decimal(figures.finish), "open_us": .decimal(figures.open), "total_us": .decimal(total),
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
