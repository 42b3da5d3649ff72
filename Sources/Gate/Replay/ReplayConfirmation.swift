import CountersignWire

/// An operator's word that the system's clock is right now, after the server has run with one that was far ahead.
///
/// Everything that was admitted before it and could be presented again is refused for good:
///
/// - what was admitted by the right clock was made at or before the new floor;
/// - what was admitted by a clock that was ahead was made in one of the header's periods, or so close to it
///   as its window allows; those are kept as *refused intervals*, and when real time reaches one, its
///   signatures are refused then.
///
/// The periods are on the disk before anything is admitted under them, so neither a kill nor a power loss
/// takes one away.
package struct ReplayConfirmation: Sendable, Equatable {
    /// 1 for a deployment's first, and one more for each.
    package var number: Int64
    /// Whole Unix seconds.
    package var at: Int64
    /// The intervals that are refused from then on.
    package var refused: Intervals

    package init(number: Int64, at: Int64, refused: Intervals) {
        self.number = number
        self.at = at
        self.refused = refused
    }
}

/// What a replay file's header says, read while a server may be using it.
package struct ReplayStatus: Sendable {
    /// Signatures made at or before this (Unix seconds) are refused; 0 where there is no such bound.
    package let floor: Int64
    package let window: Int64
    package let entries: Int
    package let capacity: Int
    package let periods: Intervals
    package let refused: Intervals
    /// The number of the last confirmation that was carried out.
    package let confirmation: Int64
    /// What a confirmation now would set and keep.
    package let planned: (floor: Int64, refused: Intervals)

    /// Nil where there is no replay file.
    package init?(path: String, now: Int64) throws(Fault) {
        guard let mapping = try Mapping(opening: path, growingTo: 0) else { return nil }
        let header = ReplayHeader(mapping.start)
        guard header.isWhole(size: mapping.size) else { throw Fault(.failed, "\(path): damaged") }
        let table = ReplayTable(mapping)
        floor = table.highestFloor
        window = header.window
        periods = header.periods
        refused = header.refused
        confirmation = header.confirmation
        planned = ReplayPlan(table, now: now) { shard, body in body(shard) }.result
        let oldest = now - header.longestReach - 60
        var (live, rows, all) = (0, 0, 0)
        for shard in 0..<ShardLocks.count {
            let sample = table.sample(shard, oldest: oldest)
            live += sample.live
            rows += sample.rows
            all += header.rows(of: shard)
        }
        entries = live * all / max(rows, 1)
        capacity = all * ReplayTable.ways
    }

    /// Whether the floor lies further ahead than any restart puts it.
    package func isFarAhead(of now: Int64) -> Bool { floor > now && floor - now > max(window, 300) * 2 + 120 }
}

/// What a confirmation sets: the floor, and the intervals that are refused whatever the floor.
struct ReplayPlan {
    /// A period that reaches further ahead than this was joined with one of a wrong clock.
    private static let mostAhead: Int64 = 3600

    private(set) var result: (floor: Int64, refused: Intervals)

    /// `visit` calls its body for a shard, with the lock that it needs.
    init(
        _ table: ReplayTable, now: Int64, visit: @escaping (_ shard: Int, _ body: (Int) -> Void) -> Void
    ) {
        let header = table.header
        let window = max(header.widestWindow, 60)
        let reach = max(header.longestReach, window)
        var refused = header.refused
        var end = now
        for period in header.periods.all where period.last > now {
            if period.first - ReplayClock.tolerance <= now {
                end = min(period.last, now + ReplayPlan.mostAhead)
                if period.last > end { refused.add(first: end, last: period.last.later(by: window)) }
            } else {
                refused.add(first: period.first - reach, last: period.last.later(by: window))
            }
        }
        let floor = end + window + ReplayClock.tolerance
        // What no period accounts for: files from before there were periods.
        for time in table.floors where time > floor && !refused.contains(time) {
            refused.add(first: time - reach, last: time)
        }
        var strays: (first: Int64, last: Int64)?
        for shard in 0..<ShardLocks.count {
            table.visit(shard, visit) { created in
                guard created > floor, !refused.contains(created) else { return true }
                strays = (min(strays?.first ?? created, created), max(strays?.last ?? created, created))
                return true
            }
        }
        if let strays { refused.add(first: strays.first - reach, last: strays.last.later(by: window)) }
        result = (floor, refused.ending(after: floor))
    }
}

extension ReplayTable {
    /// Every bound below which something is refused.
    fileprivate var floors: [Int64] {
        [header.floor, header.horizon] + (0..<ShardLocks.count).map { header.shardFloor($0) }
    }

    fileprivate var highestFloor: Int64 {
        (0..<ShardLocks.count).reduce(header.floor) { max($0, header.shardFloor($1)) }
    }

    /// Calls `keep` with the creation time of each of a shard's entries, some rows at a time; those for which
    /// it is false are removed.
    fileprivate func visit(
        _ shard: Int, _ visit: @escaping (_ shard: Int, _ body: (Int) -> Void) -> Void, keep: (Int64) -> Bool
    ) {
        var row = 0
        var isOver = false
        while !isOver {
            visit(shard) { shard in
                let end = min(row + 64, header.rows(of: shard))
                for row in row..<max(end, row) {
                    let bucket = bucket(row: row, shard: shard)
                    for way in 0..<ReplayTable.ways where bucket[way * 2 + 1] >> 32 != 0 {
                        if !keep(Int64(bucket[way * 2 + 1] >> 32)) { bucket[way * 2 + 1] = 0 }
                    }
                }
                row = end
                isOver = end == header.rows(of: shard)
            }
        }
    }
}

extension ReplayFile {
    /// Carries a confirmation out, once. Takes no lock for longer than it looks at some rows of one shard.
    package func confirm(_ confirmation: ReplayConfirmation, now: Int64) throws(Fault) {
        let header = table.header
        guard confirmation.number > header.confirmation else { return }
        guard abs(confirmation.at - now) <= ReplayFile.mostDelay else {
            throw Fault(
                .failed,
                "the clock was confirmed at \(confirmation.at), and it is \(now) now; "
                    + "`countersign replay confirm-clock` confirms it anew")
        }
        noteClock(now)
        let visit = { (shard: Int, body: (Int) -> Void) in
            self.locks.with(shard, repair: self.table.removeMoved) { body(shard) }
        }
        let plan = ReplayPlan(table, now: now, visit: visit).result
        var refused = plan.refused
        refused.add(confirmation.refused)
        // The intervals are on the disk before any bound falls: in between, both refuse.
        locks.withAll(repair: table.removeMoved) { header.refused = refused }
        try table.synchroniseHeader()
        locks.withAll(repair: table.removeMoved) {
            header.floor = plan.floor
            header.lowerShardFloors(to: plan.floor)
            header.lowerHorizon(to: plan.floor)
            header.confirmation = confirmation.number
        }
        // What the intervals refuse needs no place in the table, and must not raise the floor at the next start.
        for shard in 0..<ShardLocks.count { table.visit(shard, visit) { !refused.contains($0) } }
        try table.synchroniseHeader()
    }

    /// How far the floor lies ahead of the clock, where that is further than any restart puts it.
    package func floorFarAhead(of now: Int64) -> Int64? {
        let header = table.header
        let floor = table.highestFloor
        return floor > now && floor - now > max(header.window, 300) * 2 + 120 ? floor : nil
    }

    /// Seconds between a confirmation and its being carried out.
    private static let mostDelay: Int64 = 600
}

extension Int64 {
    fileprivate func later(by seconds: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(seconds)
        return overflow ? .max : sum
    }
}
