import CountersignAuthority
import CountersignWire

/// Logs, at the start and at each change, which apps have requests that reach the backend although
/// enforcement would refuse them.
struct ObserveModeReporter {
    private let keys: ReleaseKeyDirectory
    private let log: EventLog?
    private var told: [AppName: ReleaseKeyDirectory.ObservedApp] = [:]

    init(_ keys: ReleaseKeyDirectory, log: EventLog?) {
        self.keys = keys
        self.log = log
    }

    mutating func logChanges(at now: Int64) {
        let observed = keys.observed(at: now)
        guard observed != told else { return }
        for (name, app) in observed.sorted(by: { $0.key.description < $1.key.description })
        where told[name] != app {
            log?.note(
                subject: "enforcement",
                message: "app \(name): requests without a valid proof reach the backend until "
                    + CivilTime.rfc3339Text(app.until) + ObserveModeReporter.exception(for: app.host))
        }
        for name in told.keys.sorted(by: { $0.description < $1.description }) where observed[name] == nil {
            log?.note(subject: "enforcement", message: "app \(name): requests are refused again")
        }
        told = observed
    }

    /// The requests that belong to no app, so that no app's enforcement lets them through.
    private static func exception(for claim: LegacyHostClaim) -> String {
        guard !claim.isEffective else { return "" }
        let refused = ", except those that name no known release (unsigned, unknown key), which are refused"
        guard let host = claim.host else { return refused + ": the app's policy names no legacy-host" }
        let others = claim.conflicts.filter { $0.host == host }.map(\.other.description)
            .joined(separator: ", ")
        return refused + ": legacy-host \(host) is also named by \(others)"
    }
}
