import CountersignSeal
import CountersignWire

/// The budget of wrong codes that are entered without an id, for one account and purpose. Such an entry is
/// compared with each valid code of the purpose and costs none of them a try: a stranger who enters codes in
/// the owner's name takes no code away. ``most`` at any time, and then one an hour. Source:
/// docs/decisions/0103-codes-side-by-side.md.
package struct UnnamedGuesses: Sendable, Equatable {
    package static let most: Int64 = 25
    /// The most wrong codes in any ``CodePace/period``.
    package static let mostInPeriod = most + CodePace.period / CodePace.interval - 1

    /// What was left at the time `since`.
    package let left: Int64
    /// Whole Unix seconds. A store may forget the budget ``CodePace/period`` later.
    package let since: Int64

    package init(left: Int64, since: Int64) { (self.left, self.since) = (left, since) }

    /// The whole budget.
    init(at now: Int64) { self.init(left: UnnamedGuesses.most, since: now) }

    /// The budget as it is now. A time later than `now` is of a clock that was set back since, and counts as
    /// `now`.
    func updated(at now: Int64) -> UnnamedGuesses {
        guard since <= now else { return UnnamedGuesses(left: min(left, UnnamedGuesses.most), since: now) }
        let hours = (now - since) / CodePace.interval
        guard hours < UnnamedGuesses.most - left else { return UnnamedGuesses(at: now) }
        return UnnamedGuesses(left: left + hours, since: since + hours * CodePace.interval)
    }

    var next: UnnamedGuesses { UnnamedGuesses(left: left - 1, since: since) }

    /// When another entry without an id is compared, if none is left.
    var end: Int64 { since + CodePace.interval }
}

extension AccountCodeID {
    /// The id of the row that keeps the budget of the purpose, beside the codes. No code has it, because the
    /// ids of codes are random.
    package static func unnamedGuesses(at purpose: CodePurpose) -> AccountCodeID {
        let digest = SHA256.digest(Array("unnamed guesses \(purpose)".utf8).span)
        return AccountCodeID(digest: digest)
    }
}
