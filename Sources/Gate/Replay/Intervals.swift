/// At most eight closed intervals of whole Unix seconds, in order and apart. One more joins the two that lie
/// nearest to each other, so that what they cover only grows.
package struct Intervals: Sendable, Equatable {
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
            if Intervals.gap(between: interval, and: added) <= 0 {
                added = Interval(first: min(added.first, interval.first), last: max(added.last, interval.last))
            } else {
                others.append(interval)
            }
        }
        all = (others + [added]).sorted { $0.first < $1.first }
        if all.count > Intervals.most { joinNearest() }
    }

    mutating func add(_ others: Intervals) {
        for interval in others.all { add(first: interval.first, last: interval.last) }
    }

    func interval(with time: Int64) -> Interval? { all.first { $0.first <= time && time <= $0.last } }

    func contains(_ time: Int64) -> Bool { interval(with: time) != nil }

    /// Those that reach beyond `time`.
    func ending(after time: Int64) -> Intervals {
        var rest = Intervals()
        rest.all = all.filter { $0.last > time }
        return rest
    }

    private func gap(before index: Int) -> Int64 { Intervals.gap(between: all[index - 1], and: all[index]) }

    private mutating func joinNearest() {
        var nearest = 1
        for index in 1..<all.count where gap(before: index) < gap(before: nearest) { nearest = index }
        all[nearest - 1].last = max(all[nearest - 1].last, all[nearest].last)
        all.remove(at: nearest)
    }

    /// Seconds between the two; 0 or less where they meet.
    private static func gap(between left: Interval, and right: Interval) -> Int64 {
        let (gap, overflow) = max(left.first, right.first).subtractingReportingOverflow(min(left.last, right.last))
        return overflow ? Int64.max : gap
    }
}
