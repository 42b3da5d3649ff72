import CountersignSchemes
import CountersignWire

/// So many requests of one release, on one day, that ended alike. What a team reads before it turns a scheme off.
package struct MeterEntry: Sendable, Equatable {
    /// What the gate said of the requests, and of which release.
    package struct Subject: Sendable, Hashable {
        /// Empty, as the other two are, for requests that name no release.
        package var app: String
        /// The release's key id.
        package var release: String
        package var scheme: String
        package var outcome: MeterOutcome

        package init(app: String, release: String, scheme: String, outcome: MeterOutcome) {
            self.app = app
            self.release = release
            self.scheme = scheme
            self.outcome = outcome
        }
    }

    package var subject: Subject
    /// Days since 1970-01-01, UTC.
    package var day: Int64
    package var count: Int64
    /// Whole Unix seconds; as exact as the meter is written down often.
    package var lastSeen: Int64

    package init(subject: Subject, day: Int64, count: Int64, lastSeen: Int64) {
        self.subject = subject
        self.day = day
        self.count = count
        self.lastSeen = lastSeen
    }
}

/// How the gate judged a request. A request that was let in counts as that, whatever the backend made of it.
package enum MeterOutcome: Sendable, Hashable {
    case accepted
    /// Under the key that is to follow the current one.
    case acceptedUnderNextKey
    /// By an upload ticket, without a signature.
    case acceptedByTicket
    /// Let through to a route that is open to anybody: nothing was judged.
    case open
    /// Let through although it would be refused for this: its route only observes.
    case observed(Refusal.Code)
    case refused(Refusal.Code)

    /// Every one, in an order that does not change while the process runs.
    package static let all: [MeterOutcome] =
        [.accepted, .acceptedUnderNextKey, .acceptedByTicket, .open] + Refusal.Code.allCases.map { .refused($0) }
        + Refusal.Code.allCases.map { .observed($0) }

    /// How the store spells it: never reused.
    package var name: String {
        switch self {
        case .accepted: "accepted"
        case .acceptedUnderNextKey: "accepted-next"
        case .acceptedByTicket: "accepted-ticket"
        case .open: "open"
        case .observed(let code): MeterOutcome.observedPrefix + code.rawValue
        case .refused(let code): code.rawValue
        }
    }

    private static let observedPrefix = "would-refuse "

    package init?(name: String) {
        switch name {
        case "accepted": self = .accepted
        case "accepted-next": self = .acceptedUnderNextKey
        case "accepted-ticket": self = .acceptedByTicket
        case "open": self = .open
        default:
            let isObserved = name.hasPrefix(MeterOutcome.observedPrefix)
            let code = isObserved ? String(name.dropFirst(MeterOutcome.observedPrefix.count)) : name
            guard let code = Refusal.Code(rawValue: code) else { return nil }
            self = isObserved ? .observed(code) : .refused(code)
        }
    }
}

/// Where the meter is written down. Not a change of what requests are judged by: the store's revision stays.
package protocol MeterStore: Sendable {
    /// Adds to what is there, all or none, and durable once it returns.
    func add(_ entries: [MeterEntry]) throws(Fault)
    /// Of that day and later, by day.
    func meter(since day: Int64) throws(Fault) -> [MeterEntry]
    /// Forgets what is older than that day.
    func forgetMeter(before day: Int64) throws(Fault)
    /// Gives back what the machine lent. A later call opens the store again.
    func close()
}
