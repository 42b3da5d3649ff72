import CountersignGate
import CountersignSchemes
import CountersignWire

/// The number of requests of one release with one outcome on one day. Teams read it before they turn a
/// scheme off.
package struct MeterEntry: Sendable, Equatable {
    /// The outcome of the requests, and the release that they belong to.
    package struct Subject: Sendable, Hashable {
        /// Empty, as are `release` and `scheme`, for requests that name no release.
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
    /// Whole Unix seconds, as precise as the interval at which the meter is written.
    package var lastSeen: Int64

    package init(subject: Subject, day: Int64, count: Int64, lastSeen: Int64) {
        self.subject = subject
        self.day = day
        self.count = count
        self.lastSeen = lastSeen
    }
}

/// The class of an HTTP status. Source: RFC 9110 §15.
package enum StatusClass: Int, Sendable, CaseIterable {
    case success = 2
    case redirection
    case clientError
    case serverError

    /// The class of a final status. Statuses over 599 count as errors of the server.
    package init(status: Int) { self = StatusClass(rawValue: status / 100) ?? .serverError }

    /// `2xx` to `5xx`.
    package var text: String { "\(rawValue)xx" }
}

/// How a request ended. An admitted request counts as accepted if its response was delivered and was not a
/// server error of the backend.
package enum MeterOutcome: Sendable, Hashable {
    case accepted
    /// Accepted under the next key.
    case acceptedUnderNextKey
    /// Accepted by an upload ticket, without a signature.
    case acceptedByTicket
    /// Passed to a route that is open to anyone, without judgement.
    case open
    /// Passed although it would be refused with this code, because its route only observes.
    case observed(Refusal.Code)
    case refused(Refusal.Code)
    /// Admitted, or passed without proof; then the backend or the delivery of the response failed.
    case failed(DeliveryFailure)
    /// The backend responded. The request is also counted by how it ended.
    case answered(StatusClass)
    /// The backend's response to an earlier copy of the request was delivered again. The request is also
    /// counted by how it ended, as if the response were new.
    case repeated(StatusClass)

    /// All outcomes, in an order that does not change while the process runs.
    package static let all: [MeterOutcome] =
        [.accepted, .acceptedUnderNextKey, .acceptedByTicket, .open]
        + Refusal.Code.allCases.map { .refused($0) }
        + Refusal.Code.allCases.map { .observed($0) }
        + DeliveryFailure.allCases.map { .failed($0) } + StatusClass.allCases.map { .answered($0) }
        + StatusClass.allCases.map { .repeated($0) }

    /// The outcome's name in the store; names are never reused.
    package var name: String {
        switch self {
        case .accepted: "accepted"
        case .acceptedUnderNextKey: "accepted-next"
        case .acceptedByTicket: "accepted-ticket"
        case .open: "open"
        case .observed(let code): MeterOutcome.observedPrefix + code.rawValue
        case .refused(let code): code.rawValue
        case .failed(let failure): MeterOutcome.failedPrefix + failure.rawValue
        case .answered(let status): MeterOutcome.answeredPrefix + status.text
        case .repeated(let status): MeterOutcome.repeatedPrefix + status.text
        }
    }

    /// How the metrics name the outcome: the key under which a request was accepted is not a part of it.
    package var label: String {
        switch self {
        case .accepted, .acceptedUnderNextKey, .acceptedByTicket: "accepted"
        case .open: "open"
        case .observed(let code): "would-refuse-\(code.rawValue)"
        case .refused(let code): code.rawValue
        case .failed(let failure): failure.rawValue
        case .answered(let status), .repeated(let status): status.text
        }
    }

    /// Whether the gate admitted the request, if it counts to a release: such a caller is cut off when its
    /// release or scheme is.
    package var countsAsAdmitted: Bool {
        switch self {
        case .accepted, .acceptedUnderNextKey, .acceptedByTicket, .failed: true
        // The proof of such a caller is valid. It lacks what its route's level requires.
        case .observed(let code): code.isOfLevel
        case .open, .refused, .answered, .repeated: false
        }
    }

    /// Whether this outcome states how a request ended. Each request has exactly one such outcome.
    package var isEnd: Bool {
        switch self {
        case .answered, .repeated: false
        default: true
        }
    }

    private static let observedPrefix = "would-refuse "
    private static let failedPrefix = "failed "
    private static let answeredPrefix = "answered "
    private static let repeatedPrefix = "repeated "

    private static func status(of name: String, after prefix: String) -> StatusClass? {
        let text = name.dropFirst(prefix.count)
        return StatusClass.allCases.first { $0.text == text }
    }

    package init?(name: String) {
        switch name {
        case "accepted": self = .accepted
        case "accepted-next": self = .acceptedUnderNextKey
        case "accepted-ticket": self = .acceptedByTicket
        case "open": self = .open
        case let name where name.hasPrefix(MeterOutcome.failedPrefix):
            let failure = DeliveryFailure(rawValue: String(name.dropFirst(MeterOutcome.failedPrefix.count)))
            guard let failure else { return nil }
            self = .failed(failure)
        case let name where name.hasPrefix(MeterOutcome.answeredPrefix):
            guard let status = MeterOutcome.status(of: name, after: MeterOutcome.answeredPrefix) else {
                return nil
            }
            self = .answered(status)
        case let name where name.hasPrefix(MeterOutcome.repeatedPrefix):
            guard let status = MeterOutcome.status(of: name, after: MeterOutcome.repeatedPrefix) else {
                return nil
            }
            self = .repeated(status)
        default:
            let isObserved = name.hasPrefix(MeterOutcome.observedPrefix)
            let code = isObserved ? String(name.dropFirst(MeterOutcome.observedPrefix.count)) : name
            guard let code = Refusal.Code(rawValue: code) else { return nil }
            self = isObserved ? .observed(code) : .refused(code)
        }
    }
}

/// The stored meter. Writing it does not change the store's revision, because it does not affect
/// judgements.
package protocol MeterStore: Sendable {
    /// Adds to the stored counts, all or none, durably.
    func add(_ entries: [MeterEntry]) throws(OperationalError)
    /// The entries of that day and later, by day.
    func meter(since day: Int64) throws(OperationalError) -> [MeterEntry]
    /// Deletes the entries of the days before the day of `time`.
    func forgetMeter(before time: TrustedTime) throws(OperationalError)
    /// Releases the store's resources. A later call opens the store again.
    func close()
}
