import CountersignWire

/// An operator's statement that the system clock is right now, after the server ran with a clock that was far
/// ahead.
///
/// Every signature that was admitted before the confirmation and is still fresh or will become fresh is
/// refused from then on:
///
/// - a signature admitted under the right clock was made at or before the new floor;
/// - a signature admitted under a clock that was ahead was made in one of the header's periods, or within the
///   window of one; these times are kept as *refused intervals*, and the table refuses their signatures when
///   real time reaches them.
///
/// A period is on the disk before any request is admitted under it, so neither a kill nor a power loss
/// removes one.
package struct ClockConfirmation: Sendable, Equatable {
    /// 1 for a deployment's first confirmation; each later one adds 1.
    package var number: Int64
    /// Whole Unix seconds.
    package var at: Int64
    /// The creation times that are refused from this confirmation on.
    package var refused: TimeIntervals

    package init(number: Int64, at: Int64, refused: TimeIntervals) {
        self.number = number
        self.at = at
        self.refused = refused
    }
}

/// The contents of a replay file's header, read while a server may be using the file.
package struct ReplayStatus: Sendable {
    /// Signatures made at or before this time (Unix seconds) are refused; 0 for no bound.
    package let floor: Int64
    package let window: Int64
    package let entries: Int
    package let capacity: Int
    package let periods: TimeIntervals
    package let refused: TimeIntervals
    /// The number of the last confirmation that was applied.
    package let confirmation: Int64
    /// The floor and the refused intervals that a confirmation at this time would set.
    package let planned: (floor: Int64, refused: TimeIntervals)

    /// Nil if there is no replay file.
    package init?(path: String, now: Int64) throws(OperationalError) {
        guard let mapping = try MappedFile(opening: path, growingTo: 0) else { return nil }
        let header = ReplayHeader(mapping.start)
        guard header.isWhole(size: mapping.size) else {
            throw OperationalError(.failed, message: "\(path): damaged")
        }
        let table = ReplayTable(mapping)
        floor = table.highestFloor
        window = header.window
        periods = header.periods
        refused = header.refused
        confirmation = header.confirmation
        planned = ClockConfirmationPlan(table, now: now) { shard, body in body(shard) }.result
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

    /// Whether the floor lies further ahead of the clock than a restart can put it.
    package func isFarAhead(of now: Int64) -> Bool { floor > now && floor - now > max(window, 300) * 2 + 120 }
}

/// What a confirmation sets: the floor, and the intervals that are refused regardless of the floor.
struct ClockConfirmationPlan {
    /// A period that ends further ahead than this, in seconds, was joined with a period of a wrong clock.
    private static let mostAhead: Int64 = 3600

    private(set) var result: (floor: Int64, refused: TimeIntervals)

    /// `visit` calls its body for a shard while holding the lock that the body needs.
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
                end = min(period.last, now + ClockConfirmationPlan.mostAhead)
                if period.last > end { refused.add(first: end, last: period.last.later(by: window)) }
            } else {
                refused.add(first: period.first - reach, last: period.last.later(by: window))
            }
        }
        let floor = end + window + ReplayClock.tolerance
        // Floors that no period explains, from files written before periods existed.
        for time in table.floors where time > floor && !refused.contains(time) {
            refused.add(first: time - reach, last: time)
        }
        var strays: (first: Int64, last: Int64)?
        for shard in 0..<ShardLocks.count {
            table.forEachEntry(of: shard, visit: visit) { created in
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
    /// Every bound at or below which signatures are refused.
    fileprivate var floors: [Int64] {
        [header.floor, header.horizon] + (0..<ShardLocks.count).map { header.shardFloor($0) }
    }

    fileprivate var highestFloor: Int64 {
        (0..<ShardLocks.count).reduce(header.floor) { max($0, header.shardFloor($1)) }
    }

    /// Calls `keep` with the creation time of each of a shard's entries, some rows at a time, and removes the
    /// entries for which it returns false.
    fileprivate func forEachEntry(
        of shard: Int, visit: @escaping (_ shard: Int, _ body: (Int) -> Void) -> Void, keep: (Int64) -> Bool
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
    /// Applies a confirmation once. Apart from short updates of the header, it holds one shard's lock at a
    /// time, for some rows only.
    package func apply(_ confirmation: ClockConfirmation, now: Int64) throws(OperationalError) {
        let header = table.header
        guard confirmation.number > header.confirmation else { return }
        guard abs(confirmation.at - now) <= ReplayFile.mostDelay else {
            throw OperationalError(
                .failed,
                message: "the clock was confirmed at \(confirmation.at), and it is \(now) now; "
                    + "`countersign replay confirm-clock` confirms it anew")
        }
        noteClock(now)
        let visit = { (shard: Int, body: (Int) -> Void) in
            self.locks.withLock(of: shard, repair: self.table.removeMoved) { body(shard) }
        }
        let plan = ClockConfirmationPlan(table, now: now, visit: visit).result
        var refused = plan.refused
        refused.add(confirmation.refused)
        // Write the intervals to the disk before lowering any bound: in between, both refuse.
        locks.withAllLocks(repair: table.removeMoved) { header.refused = refused }
        try table.synchroniseHeader()
        locks.withAllLocks(repair: table.removeMoved) {
            header.floor = plan.floor
            header.lowerShardFloors(to: plan.floor)
            header.lowerHorizon(to: plan.floor)
            header.confirmation = confirmation.number
        }
        // Entries that the intervals refuse need no place in the table and must not raise the floor at the
        // next start.
        for shard in 0..<ShardLocks.count {
            table.forEachEntry(of: shard, visit: visit) { !refused.contains($0) }
        }
        try table.synchroniseHeader()
    }

    /// Above everything that was admitted and everything that is refused: the floor of a guard that takes
    /// this one's place at `now`. Reads all entries.
    package func floorForSuccessor(now: Int64) -> Int64 {
        let (sum, overflow) = max(now, table.newest).addingReportingOverflow(table.header.widestWindow)
        return max(overflow ? .max : sum, table.highestFloor, table.header.horizon)
    }

    /// Refuses the requests that another guard may have admitted until `now`, while it was used in place of
    /// this one.
    package func raiseFloor(at now: Int64) throws(OperationalError) {
        let floor = floorForSuccessor(now: now).later(by: ReplayClock.tolerance)
        locks.withAllLocks(repair: table.removeMoved) {
            table.header.floor = max(table.header.floor, floor)
        }
        try table.synchroniseHeader()
    }

    /// Signatures made up to this time (Unix seconds) are refused in some part of the table; 0 for no bound.
    package var currentFloor: Int64 { table.highestFloor }

    /// The floor, if it lies further ahead of the clock than a restart can put it; nil otherwise.
    package func floorFarAhead(of now: Int64) -> Int64? {
        let header = table.header
        let floor = table.highestFloor
        return floor > now && floor - now > max(header.window, 300) * 2 + 120 ? floor : nil
    }

    /// The longest time in seconds between a confirmation and its application.
    private static let mostDelay: Int64 = 600
}

extension Int64 {
    fileprivate func later(by seconds: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(seconds)
        return overflow ? .max : sum
    }
}
