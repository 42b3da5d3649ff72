import CountersignGate
import CountersignWire

/// How often a one-time code may be made: five codes of an account and purpose in a day, and after those one
/// an hour. No code replaces another, and at most five can be redeemed at a time.
///
/// A stranger who asks for codes in the owner's name therefore takes none away: each code reaches the owner,
/// and while the stranger continues, one that is good for an hour is always in the owner's mailbox.
package struct CodePace: Sendable {
    /// The most codes that can be redeemed at a time.
    package static let mostLive = 5
    /// Seconds after a code during which the next one is refused, once there were five in a day.
    package static let interval: Int64 = 3_600
    /// Seconds for which a code counts, whether or not it can still be redeemed; none is good for longer.
    package static let period: Int64 = 86_400
    /// The most codes in any ``period``: five, and one after each hour of it.
    package static let mostInPeriod = mostLive + Int(period / interval) - 1

    /// A code that was made.
    package struct Entry: Sendable {
        let made: Int64
        /// When the code can no longer be redeemed; nil if that is so already.
        let end: Int64?

        init(made: Int64, end: Int64?) { (self.made, self.end) = (made, end) }
    }

    package enum Refusal: Error, Sendable, Equatable {
        /// There are ``mostLive`` codes that can be redeemed; the first expires at that time.
        case full(until: Int64)
        /// The last code was made less than ``interval`` seconds ago.
        case early(until: Int64)

        /// Why no code is made, for an error about that account.
        func text(_ kind: String) -> String {
            switch self {
            case .full(let time):
                "has \(CodePace.mostLive) \(kind) that are still good, the most allowed; the first expires "
                    + "at " + CivilTime.rfc3339Text(time)
            case .early(let time):
                "was given \(CodePace.mostLive) \(kind) within a day, after which there is one an hour; the "
                    + "next at \(CivilTime.rfc3339Text(time))"
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
