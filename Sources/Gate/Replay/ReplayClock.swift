import CountersignWire

/// Records by which clock requests were admitted, so that times of a wrong clock can be told from times of
/// the right one afterwards.
///
/// The header lists *periods*: intervals of the system's clock during which requests were admitted. Each is
/// written to the disk with an end in the future before any request is admitted under it, and is extended
/// before that end. A clock that jumps starts another period.
enum ReplayClock {
    /// Seconds by which a period is extended.
    static let lease: Int64 = 60
    /// Seconds before a period's end at which it is extended.
    static let renewal: Int64 = 30
    /// An adjustment of the clock by at most this many seconds does not start another period.
    static let tolerance: Int64 = 10

    /// The periods with one that contains `now`, and that period.
    static func extended(_ periods: TimeIntervals, around now: Int64) -> (
        TimeIntervals, TimeIntervals.Interval
    ) {
        let end = now.addingReportingOverflow(lease)
        var added = TimeIntervals.Interval(first: now, last: end.overflow ? Int64.max : end.partialValue)
        for period in periods.all where period.first - tolerance <= now && now - tolerance <= period.last {
            added.first = min(added.first, period.first)
            added.last = max(added.last, period.last)
        }
        var all = periods
        all.add(first: added.first, last: added.last)
        return (all, all.interval(containing: now) ?? added)
    }
}

extension ReplayFile {
    /// Extends the header's current period to cover `now`, durably. This is rare, so it runs on the thread
    /// that finds `now` uncovered.
    func noteClock(_ now: Int64) {
        let header = table.header
        locks.withHeader {
            let (periods, present) = ReplayClock.extended(header.periods, around: now)
            header.periods = periods
            // If the disk does not accept the page, the table's entries are lost as well, so the period is
            // kept in memory like them.
            try? table.synchroniseHeader()
            header.period = (present.first, present.last)
        }
    }
}

/// At most eight closed intervals of whole Unix seconds, sorted and disjoint. Adding a ninth joins the two
/// nearest intervals, so that the covered times only grow.
package struct TimeIntervals: Sendable, Equatable {
    package struct Interval: Sendable, Equatable {
        package var first: Int64
        package var last: Int64
    }

    static let most = 8
    package private(set) var all: [Interval] = []

    package init() {}

    package mutating func add(first: Int64, last: Int64) {
        var added = Interval(first: min(first, last), last: max(first, last))
        var others: [Interval] = []
        for interval in all {
            if TimeIntervals.gap(between: interval, and: added) <= 0 {
                added = Interval(
                    first: min(added.first, interval.first), last: max(added.last, interval.last))
            } else {
                others.append(interval)
            }
        }
        all = (others + [added]).sorted { $0.first < $1.first }
        if all.count > TimeIntervals.most { joinNearest() }
    }

    mutating func add(_ others: TimeIntervals) {
        for interval in others.all { add(first: interval.first, last: interval.last) }
    }

    func interval(containing time: Int64) -> Interval? { all.first { $0.first <= time && time <= $0.last } }

    package func contains(_ time: Int64) -> Bool { interval(containing: time) != nil }

    /// The intervals that end after `time`.
    func ending(after time: Int64) -> TimeIntervals {
        var rest = TimeIntervals()
        rest.all = all.filter { $0.last > time }
        return rest
    }

    private func gap(before index: Int) -> Int64 {
        TimeIntervals.gap(between: all[index - 1], and: all[index])
    }

    private mutating func joinNearest() {
        var nearest = 1
        for index in 1..<all.count where gap(before: index) < gap(before: nearest) { nearest = index }
        all[nearest - 1].last = max(all[nearest - 1].last, all[nearest].last)
        all.remove(at: nearest)
    }

    /// Seconds between the two; 0 or less if they meet.
    private static func gap(between left: Interval, and right: Interval) -> Int64 {
        let (gap, overflow) = max(left.first, right.first).subtractingReportingOverflow(
            min(left.last, right.last))
        return overflow ? Int64.max : gap
    }
}
