import CountersignGate
import CountersignWire

/// Limits how often a one-time code can be made: five codes of an account and purpose in a day, then one an
/// hour. A new code replaces no earlier one. At most five can be redeemed at a time.
///
/// A stranger who asks for codes in the owner's name therefore invalidates none. Each code reaches the owner.
/// If codes are valid for an hour, the owner's mailbox always has a valid one while the stranger continues.
package struct CodePace: Sendable {
    /// The most codes that can be redeemed at a time.
    package static let mostLive = 5
    /// The seconds that must pass between two codes after five were made in a day.
    package static let interval: Int64 = 3_600
    /// Seconds for which a code counts, whether or not it can still be redeemed. No code is valid for longer.
    package static let period: Int64 = 86_400
    /// The most codes in any ``period``: five, and then one an hour.
    package static let mostInPeriod = mostLive + Int(period / interval) - 1

    /// A code as the pace counts it.
    package struct Entry: Sendable {
        let made: Int64
        /// When the code expires; nil if it can no longer be redeemed.
        let end: Int64?

        init(made: Int64, end: Int64?) { (self.made, self.end) = (made, end) }
    }

    package enum Refusal: Error, Sendable, Equatable {
        /// There are ``mostLive`` codes that can be redeemed; the first expires at that time.
        case full(until: Int64)
        /// The last code was made less than ``interval`` seconds ago.
        case early(until: Int64)

        /// The reason, for an error message about the account. `kind` names the codes.
        func text(_ kind: String) -> String {
            switch self {
            case .full(let time):
                "has \(CodePace.mostLive) \(kind) that are still valid, the most allowed; the first expires "
                    + "at " + CivilTime.rfc3339Text(time)
            case .early(let time):
                "got \(CodePace.mostLive) \(kind) within a day, and can now get one an hour; the "
                    + "next one is possible at \(CivilTime.rfc3339Text(time))"
            }
        }
    }

    /// Nil if another code may be made. A code whose time is later than `now` was made before the clock was
    /// set back, and does not count for the pace.
    package static func refusal(after entries: [Entry], at now: Int64) -> Refusal? {
        let ends = entries.compactMap(\.end)
        if ends.count >= mostLive, let first = ends.min() { return .full(until: first) }
        let recent = entries.map(\.made).filter { $0 <= now && now - $0 < period }
        guard recent.count >= mostLive, let last = recent.max(), now - last < interval else { return nil }
        return .early(until: last + interval)
    }
}
