import CountersignAuthority
import CountersignWire

/// Says in the log, at the start and at each change, which apps have requests that reach the backend although
/// they would be refused.
struct ObservedApps {
    private let keys: LiveKeys
    private let log: EventLog?
    /// When it ends, in whole Unix seconds, by app.
    private var told: [String: Int64] = [:]

    init(_ keys: LiveKeys, _ log: EventLog?) {
        self.keys = keys
        self.log = log
    }

    mutating func tell(at now: Int64) {
        let observed = keys.observed(at: now)
        guard observed != told else { return }
        for (app, until) in observed.sorted(by: { $0.key < $1.key }) where told[app] != until {
            log?.note(
                "enforcement",
                "app \(app): requests that fail to prove who they are reach the backend until "
                    + CivilTime.internetText(until))
        }
        for app in told.keys.sorted() where observed[app] == nil {
            log?.note("enforcement", "app \(app): requests are refused again")
        }
        told = observed
    }
}
