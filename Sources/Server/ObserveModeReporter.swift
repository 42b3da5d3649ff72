import CountersignAuthority
import CountersignWire

/// Logs, at the start and at each change, which apps have requests that reach the backend although
/// enforcement would refuse them.
struct ObserveModeReporter {
    private let keys: ReleaseKeyDirectory
    private let log: EventLog?
    /// When observation ends, in whole Unix seconds, by app.
    private var told: [String: Int64] = [:]

    init(_ keys: ReleaseKeyDirectory, log: EventLog?) {
        self.keys = keys
        self.log = log
    }

    mutating func logChanges(at now: Int64) {
        let observed = keys.observed(at: now)
        guard observed != told else { return }
        for (app, until) in observed.sorted(by: { $0.key < $1.key }) where told[app] != until {
            log?.note(
                subject: "enforcement",
                message: "app \(app): requests without a valid proof reach the backend until "
                    + CivilTime.rfc3339Text(until))
        }
        for app in told.keys.sorted() where observed[app] == nil {
            log?.note(subject: "enforcement", message: "app \(app): requests are refused again")
        }
        told = observed
    }
}
