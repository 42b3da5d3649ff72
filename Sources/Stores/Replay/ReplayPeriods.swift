import CountersignGate
import CountersignWire

/// The times of the clock at which requests were admitted, for all nodes. They tell times of a clock that was
/// wrong from those of the right one: a clock that was set back stands before a period, or within one that
/// ends ahead of it.
package struct ReplayPeriods: Sendable, Equatable {
    /// Seconds by which the current period is extended ahead of the clock.
    static let lease: Int64 = 60
    /// Seconds before a period's end at which it is extended.
    static let renewal: Int64 = 30
    /// An adjustment of the clock by at most this many seconds does not start another period.
    static let tolerance: Int64 = 10

    package private(set) var admitted = TimeIntervals()
    /// Creation times that are refused: those of periods that lay ahead when the clock was set back.
    package private(set) var refused = TimeIntervals()

    package init() {}

    /// Whether requests may be admitted at `now`.
    package func contain(_ now: Int64) -> Bool {
        admitted.all.contains { $0.first - ReplayPeriods.tolerance <= now && now <= $0.last }
    }

    /// The same with a period from `now` on, which continues the one that reaches up to it.
    package func extended(at now: Int64) -> ReplayPeriods {
        var first = now
        for period in admitted.all
        where period.first - ReplayPeriods.tolerance <= now && now <= period.last + ReplayPeriods.tolerance {
            first = min(first, period.first)
        }
        var periods = self
        periods.admitted.add(first: first, last: now + ReplayPeriods.lease)
        return periods
    }

    /// Whether a period ends further ahead of `now` than a lease puts it.
    package func lieAhead(of now: Int64) -> Bool {
        admitted.all.contains { $0.last > ReplayPeriods.latest(at: now) }
    }

    /// What a floor must cover at `now`, and the periods from then on. Those that lie ahead as a whole are
    /// refused, with `reach` around them; one that `now` lies within cannot be told from the present.
    package func settled(at now: Int64, reach: Int64) -> (floored: Int64, periods: ReplayPeriods) {
        var floored = now
        var periods = ReplayPeriods()
        periods.refused = refused
        for period in admitted.all {
            if period.last <= ReplayPeriods.latest(at: now) {
                periods.admitted.add(first: period.first, last: period.last)
            } else if period.first - ReplayPeriods.tolerance <= now {
                floored = max(floored, period.last)
                periods.admitted.add(first: min(period.first, now), last: now)
            } else {
                periods.refused.add(first: max(period.first - reach, 0), last: period.last + reach)
            }
        }
        return (floored, periods)
    }

    private static func latest(at now: Int64) -> Int64 { now + lease + 2 * tolerance }
}

/// The text form: the intervals, separated by commas, and a dot for none.
extension ReplayPeriods {
    var fields: [String] { [admitted, refused].map(ReplayPeriods.text) }

    /// Nil for fields of another form.
    init?(_ fields: [String]) {
        guard fields.count == 2, let admitted = ReplayPeriods.intervals(fields[0]),
            let refused = ReplayPeriods.intervals(fields[1])
        else { return nil }
        (self.admitted, self.refused) = (admitted, refused)
    }

    private static func text(_ intervals: TimeIntervals) -> String {
        intervals.all.isEmpty ? "." : intervals.all.map { "\($0.first)-\($0.last)" }.joined(separator: ",")
    }

    private static func intervals(_ text: String) -> TimeIntervals? {
        var intervals = TimeIntervals()
        if text == "." { return intervals }
        let parts = text.split(separator: ",", omittingEmptySubsequences: false)
        guard parts.count <= 16 else { return nil }
        for part in parts {
            let ends = part.split(separator: "-", omittingEmptySubsequences: false).compactMap { Int64($0) }
            // Sums of these do not overflow.
            guard ends.count == 2, 0 <= ends[0], ends[0] <= ends[1], ends[1] <= Int64.max / 4 else {
                return nil
            }
            intervals.add(first: ends[0], last: ends[1])
        }
        return intervals
    }
}
