import CountersignWire

/// By which clock requests were admitted, written down so that a clock that was wrong can be told from the right one
/// afterwards.
///
/// The header lists *periods*: intervals of the system's clock during which requests were admitted. Each is
/// written to the disk with an end that lies ahead, before any request is admitted under it, and is extended
/// in time. A clock that jumps begins another period.
enum ReplayClock {
    /// Seconds that a period is extended by.
    static let lease: Int64 = 60
    /// Seconds before a period's end at which it is extended.
    static let renewal: Int64 = 30
    /// A clock that is set by fewer seconds than this is the same clock.
    static let tolerance: Int64 = 10

    /// The periods with one around `now`, and that one.
    static func extended(_ periods: Intervals, around now: Int64) -> (Intervals, Intervals.Interval) {
        let end = now.addingReportingOverflow(lease)
        var added = Intervals.Interval(first: now, last: end.overflow ? Int64.max : end.partialValue)
        for period in periods.all where period.first - tolerance <= now && now - tolerance <= period.last {
            added.first = min(added.first, period.first)
            added.last = max(added.last, period.last)
        }
        var all = periods
        all.add(first: added.first, last: added.last)
        return (all, all.interval(with: now) ?? added)
    }
}

extension ReplayFile {
    /// Has the header's present period cover `now`, durably. Seldom, so on whatever thread finds that it does not.
    func noteClock(_ now: Int64) {
        let header = table.header
        locks.withHeader {
            let (periods, present) = ReplayClock.extended(header.periods, around: now)
            header.periods = periods
            // A disk that does not take the page is the table's end anyway; the period is believed, as its entries are.
            try? table.synchroniseHeader()
            header.period = (present.first, present.last)
        }
    }
}
