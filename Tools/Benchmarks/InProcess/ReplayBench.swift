import CountersignGate
import CountersignSchemes
import CountersignWire
import Glibc

/// Measures how long insertions into the replay table take while it grows, and the same without growth.
package struct ReplayBench: Sendable {
    package struct Figure: Sendable {
        package var subject: String
        package var insertions: Int
        /// Insertions that the table refused: at its limit a few buckets are full although most have room.
        package var refused: Int
        /// Nanoseconds.
        package var median: Int
        package var almostAll: Int
        package var longest: Int
        package var aboveMillisecond: Int
        /// The table's capacity in records at the end.
        package var capacity: Int
        /// Nanoseconds of processor time for one split: how long the thread that grows the table holds a
        /// shard's lock.
        package var longestSplit: Int
        package var meanSplit: Int
    }

    private static let now: Int64 = 1_800_000_000
    private let path: String
    private let entries: Int
    private let callers: Int

    /// The file is created at `path` and removed after each measurement.
    package init(path: String, entries: Int, callers: Int) {
        (self.path, self.entries, self.callers) = (path, entries, callers)
    }

    /// Measures first a table that starts small and grows, then one that is large from the start.
    package func run() async throws(OperationalError) -> [Figure] {
        let growing = try await measure("while it grows", placesAtFirst: 1 << 16)
        return [growing, try await measure("without growth", placesAtFirst: growing.capacity)]
    }

    private func measure(_ subject: String, placesAtFirst: Int) async throws(OperationalError) -> Figure {
        defer { for suffix in ["", ".lock"] { unlink(path + suffix) } }
        var settings = ReplayFile.Settings()
        settings.entries = placesAtFirst
        let file = try ReplayFile(path: path, expecting: nil, settings: settings, now: ReplayBench.now)
        let each = entries / callers
        let histogram = await withTaskGroup(of: Histogram.self, returning: Histogram.self) { group in
            for caller in 0..<callers {
                group.addTask { await ReplayBench.insert(caller * each..<(caller + 1) * each, into: file) }
            }
            return await group.reduce(into: Histogram()) { $0.add($1) }
        }
        let splits = ReplayBench.splits(of: file)
        return Figure(
            subject: subject, insertions: histogram.count, refused: histogram.refused,
            median: histogram.quantile(0.5), almostAll: histogram.quantile(0.9999),
            longest: histogram.longest,
            aboveMillisecond: histogram.aboveMillisecond, capacity: file.usage(now: ReplayBench.now).capacity,
            longestSplit: splits.max() ?? 0,
            meanSplit: splits.reduce(0, +) / max(splits.count, 1))
    }

    private static func insert(_ numbers: Range<Int>, into file: ReplayFile) async -> Histogram {
        var histogram = Histogram()
        guard let id = KeyID("bench") else { return histogram }
        for number in numbers {
            var nonce: [UInt8] = []
            withUnsafeBytes(of: number) { nonce += $0 }
            guard let key = Claim.ReplayKey(nonce.span) else { continue }
            let entry = ReplayEntry(
                keyID: id, scheme: .messageSignatures, replayKey: key, created: now, now: now)
            let begin = clock()
            do { try await file.insert(entry) } catch { histogram.refused += 1 }
            histogram.add(clock() - begin)
        }
        return histogram
    }

    /// Splits 64 buckets of each shard as ``ReplayTableGrower`` does. Measures processor time, to exclude
    /// other work on the machine.
    private static func splits(of file: ReplayFile) -> [Int] {
        let (table, first) = (file.table, file.table.mostRows)
        do {
            try table.file.extend(to: ReplayTable.fileBytes(rows: first + 64))
        } catch {
            // At its limit the table is not split any further.
            return []
        }
        for start in [first, ReplayTable.source(of: first)] {
            table.file.populate(ReplayTable.fileBytes(rows: start)..<ReplayTable.fileBytes(rows: start + 64))
        }
        var times: [Int] = []
        for shard in 0..<ShardLocks.count {
            for _ in 0..<64 {
                let begin = clock(CLOCK_THREAD_CPUTIME_ID)
                file.locks.withLock(of: shard, repair: table.removeMoved) {
                    if table.header.rows(of: shard) < first + 64 { table.split(shard) }
                }
                times.append(clock(CLOCK_THREAD_CPUTIME_ID) - begin)
            }
        }
        return times
    }

    private static func clock(_ id: clockid_t = CLOCK_MONOTONIC) -> Int {
        var time = timespec()
        clock_gettime(id, &time)
        return time.tv_sec * 1_000_000_000 + time.tv_nsec
    }
}

/// Durations in classes of an eighth of a power of two.
private struct Histogram: Sendable {
    var refused = 0
    private(set) var longest = 0
    private(set) var aboveMillisecond = 0
    private(set) var count = 0
    private var classes = [Int](repeating: 0, count: 64 * 8)

    mutating func add(_ nanoseconds: Int) {
        let value = max(nanoseconds, 8)
        let power = Int.bitWidth - 1 - value.leadingZeroBitCount
        classes[power * 8 + (value >> (power - 3)) & 7] += 1
        count += 1
        longest = max(longest, nanoseconds)
        if nanoseconds > 1_000_000 { aboveMillisecond += 1 }
    }

    mutating func add(_ other: Histogram) {
        for index in classes.indices { classes[index] += other.classes[index] }
        refused += other.refused
        count += other.count
        aboveMillisecond += other.aboveMillisecond
        longest = max(longest, other.longest)
    }

    func quantile(_ share: Double) -> Int {
        var left = Int(Double(count) * share)
        for index in classes.indices {
            left -= classes[index]
            if left < 0 { return (8 + index % 8) << (index / 8 - 3) }
        }
        return longest
    }
}
