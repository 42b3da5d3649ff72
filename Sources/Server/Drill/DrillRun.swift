import CountersignAuthority
import CountersignSeal
import CountersignWire

/// A drill as its command carries it out: begins it, keeps it alive, watches the server, and ends it.
package struct DrillRun {
    package enum End: String, Sendable {
        case time, interrupted
    }

    /// What was seen. Times are in milliseconds.
    package struct Report: Sendable {
        package let subject: DrillSubject
        package var duration: Int64 = 0
        package var end = End.time
        /// From the beginning until `/ready` was 503; nil if it stayed 200.
        package var unreadyAfter: Int64?
        /// The causes that `/ready` gave.
        package var causes: [String] = []
        /// Requests that the gate judged meanwhile, and those among them that were refused as `unavailable`.
        package var requests: Int64 = 0
        package var refused: Int64 = 0
        /// From the end until `/ready` was 200; nil if that took longer than half a minute.
        package var readyAfter: Int64?
    }

    private static let turn = 100
    /// Turns between two messages that keep the drill alive.
    private static let turnsPerMessage = 3
    private static let mostRecovery: Int64 = 30_000

    private let subject: DrillSubject
    private let milliseconds: Int64
    private let client: AdminClient
    private let id = Hex.encode(SystemRandom().bytes(8).span)

    /// `milliseconds` is at most a minute.
    package init(
        _ subject: DrillSubject, milliseconds: Int64, of configuration: Configuration
    ) throws(OperationalError) {
        guard let address = configuration.admin else {
            throw OperationalError(.usage, message: "--admin off: a drill needs the server's admin listener")
        }
        (self.subject, self.milliseconds) = (subject, milliseconds)
        let folder = try DataFolder(configuration.data, absence: .fail)
        client = try AdminClient(at: address, tokenAt: folder.adminToken)
    }

    /// Throws if the server is not ready before. Call from the main thread, which takes Ctrl-C.
    package func run() throws(OperationalError) -> Report {
        Signals.block()
        let reasons = try causes()
        guard reasons.isEmpty else {
            throw OperationalError(
                .failed,
                message: "the server is not ready (\(reasons.joined(separator: ", "))); a drill would show "
                    + "nothing")
        }
        var report = Report(subject: subject)
        let before = try counts()
        let begun = NodeLease.now
        try tell(milliseconds, begin: true)
        var turns = 0
        while NodeLease.now - begun < milliseconds {
            if case .drain = Signals.next(milliseconds: DrillRun.turn) {
                report.end = .interrupted
                break
            }
            turns += 1
            if turns.isMultiple(of: DrillRun.turnsPerMessage), try tell(milliseconds) == 0 {
                // By its time, or because this command was stopped for so long that it was given up.
                report.end = NodeLease.now - begun < milliseconds ? .interrupted : .time
                break
            }
            let causes = try causes()
            if !causes.isEmpty, report.unreadyAfter == nil { report.unreadyAfter = NodeLease.now - begun }
            report.causes += causes.filter { !report.causes.contains($0) }
        }
        try tell(0)
        let ended = NodeLease.now
        report.duration = ended - begun
        let after = try counts()
        report.requests = after.requests - before.requests
        report.refused = after.unavailable - before.unavailable
        while NodeLease.now - ended < DrillRun.mostRecovery, report.readyAfter == nil {
            if try causes().isEmpty {
                report.readyAfter = NodeLease.now - ended
            } else if case .drain = Signals.next(milliseconds: DrillRun.turn) {
                break
            }
        }
        return report
    }

    /// Returns the milliseconds that are left.
    @discardableResult
    private func tell(_ milliseconds: Int64, begin: Bool = false) throws(OperationalError) -> Int64 {
        let answer = try client.post(
            [
                "subject": .string(subject.rawValue), "id": .string(id),
                "milliseconds": .integer(milliseconds), "begin": .bool(begin),
            ], to: "/drill")
        let document = try? JSONReader.read(answer.body)
        guard answer.status == 200,
            let rest = document?.root["milliseconds"].flatMap({
                document?.integer($0, in: 0...Int(milliseconds))
            })
        else {
            let title = document?.root["title"]?.string ?? "no reason"
            throw OperationalError(
                .failed, message: "the server refused the drill: \(answer.status) \(title)")
        }
        return Int64(rest)
    }

    /// What keeps the server from being ready.
    private func causes() throws(OperationalError) -> [String] {
        let answer = try client.get("/ready")
        guard let root = try? JSONReader.read(answer.body).root, let reasons = root["reasons"]?.elements
        else {
            throw OperationalError(.failed, message: "\(client.address): /ready: not an answer of a server")
        }
        return reasons.compactMap { $0["cause"]?.string }
    }

    /// Those that `/metrics` has.
    private func counts() throws(OperationalError) -> (requests: Int64, unavailable: Int64) {
        let answer = try client.get("/metrics")
        guard answer.status == 200 else {
            throw OperationalError(
                .failed, message: "\(client.address): /metrics: \(answer.status); is it another server's?")
        }
        var counts: (requests: Int64, unavailable: Int64) = (0, 0)
        for line in String(decoding: answer.body, as: UTF8.self).split(separator: "\n") {
            guard let number = line.split(separator: " ").last.flatMap({ Int64($0) }) else { continue }
            if line.hasPrefix("countersign_requests_total{") { counts.requests += number }
            if line.hasPrefix("countersign_unavailable_responses_total ") { counts.unavailable = number }
        }
        return counts
    }
}
