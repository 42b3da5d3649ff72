import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignReplay
import CountersignWire

/// What the console shows of the process that serves it.
package struct ServerFigures: Sendable {
    package let traffic: TrafficHistory
    package let refusals: RecentRefusals
    let metrics: Metrics
    let readiness: Readiness
    let reloads: ReloadHistory

    package var clock: TrustedClock { metrics.clock }

    /// Days before its end from which a certificate is warned of.
    package static let daysBeforeCertificateEnd: Int64 = 21

    /// The state of the process at one moment.
    package struct Status: Sendable {
        /// What keeps the process from being ready; empty if it is.
        package var problems: [(cause: String, detail: String)]
        /// What will keep clients out, or changes from being kept, unless an operator does something.
        package var warnings: [(cause: String, detail: String)]
        /// Requests that are being served.
        package var requestsInFlight: Int
        /// Open client connections.
        package var connections: Int
        /// Whole Unix seconds.
        package var began: Int64
        /// When the listener's certificate ends, in whole Unix seconds; nil without TLS.
        package var certificateExpiry: Int64?
        package var replay: Replay
        /// Findings of the last check of all rows; anything but 0 is an alarm.
        package var rowFindings: Int
    }

    /// The replay guard.
    package enum Replay: Sendable {
        /// A file of this machine: the requests that it remembers, and those that it has room for before it
        /// grows.
        case file(entries: Int, capacity: Int)
        /// A server that all nodes share, by its title; `failure` is nil while it takes requests.
        case shared(title: String, failure: String?)
    }

    /// `now` is in whole Unix seconds.
    package func status(at now: Int64) -> Status {
        Status(
            problems: readiness.reasons.map { ($0.cause.rawValue, $0.detail) },
            warnings: warnings(at: now),
            requestsInFlight: metrics.meter.requestsInFlight, connections: metrics.registry.current,
            began: metrics.began, certificateExpiry: metrics.certificate.seconds, replay: replay(at: now),
            rowFindings: metrics.rows.counts.findings)
    }

    private func warnings(at now: Int64) -> [(cause: String, detail: String)] {
        var warnings = readiness.pendingReasons.map { (cause: $0.cause.rawValue, detail: $0.detail) }
        if let end = metrics.certificate.seconds, end - now < ServerFigures.daysBeforeCertificateEnd * 86_400
        {
            let verb = end <= now ? "has ended" : "ends"
            warnings.append(("certificate", "it \(verb) at \(CivilTime.rfc3339Text(end))"))
        }
        if let failure = reloads.failure {
            warnings.append(
                ("reload", "that of \(CivilTime.rfc3339Text(failure.time)) has failed: \(failure.line)"))
        }
        if let room = DiskRoom(at: metrics.running.current.data), room.isScarce {
            warnings.append(("disk", room.text))
        }
        return warnings
    }

    private func replay(at now: Int64) -> Replay {
        guard let shared = metrics.replay.shared else {
            let use = metrics.replay.file.usage(now: now)
            return .file(entries: use.entries, capacity: use.capacity)
        }
        return .shared(title: shared.kind.title, failure: shared.usage.failure)
    }
}
