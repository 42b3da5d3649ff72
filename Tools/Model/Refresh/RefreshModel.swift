import CountersignAuthority
import CountersignClient
import CountersignGate
import CountersignHandshake
import CountersignWire

/// A model of the refresh: random schedules over the real client, the real server, and a man in the middle
/// between them, with the end of either process at any point. What it checks is in docs/decisions/0016.
package final class RefreshModel {
    private let server: ModelServer
    private let folder: String
    package private(set) var tally: [String: Int] = [:]

    /// `folder` is an existing folder that the model may fill.
    package init(folder: String) throws(OperationalError) {
        self.folder = folder
        server = try ModelServer(folder: "\(folder)/data")
    }

    /// A schedule that broke what must hold.
    package struct Failure: Error, CustomStringConvertible {
        package let seed: UInt64
        package let what: String
        package let schedule: [String]

        package var description: String {
            "seed \(seed): \(what)\n" + schedule.map { "  \($0)\n" }.joined()
        }
    }

    /// Events that the schedules must have reached together.
    package static let required = [
        "schedules with one holder", "schedules with a thief", "thief found",
        "thief found at the first refresh",
        "held copy delivered", "answer replayed with the progress", "answer session-ended reused",
        "answer unknown-key", "answer bad-signature", "answer stale", "request dropped", "response dropped",
        "request doubled", "request altered", "altered request beside it", "another response",
        "server crashes before", "server crashes after", "first use lost by a crash",
        "client killed at a send", "client killed between the write and the send",
        "client killed before a write", "another party acts meanwhile", "vault copied with a running attempt",
        "vault copied during a request", "thief's counters skip", "wrapped: replayed with the progress",
        "eight copies while one was held", "refresh that a refusal provoked", "clock corrected",
        "refresh repeated with the same attempt", "signed out", "thief found at the log-out",
        "both have the successor of one attempt",
    ]

    package func run(seed: UInt64) async throws {
        let schedule = try RefreshSchedule(seed: seed, server: server, folder: folder)
        do {
            try await schedule.run()
        } catch let violation as RefreshSchedule.ModelViolation {
            throw Failure(seed: seed, what: violation.what, schedule: schedule.network.log)
        } catch {
            throw Failure(seed: seed, what: "\(error)", schedule: schedule.network.log)
        }
        tally.merge(schedule.network.tally) { $0 + $1 }
    }

    package var missing: [String] { RefreshModel.required.filter { tally[$0, default: 0] == 0 } }
}
