import CountersignSchemes
import CountersignWire
import Glibc

/// Measures how long insertions into the replay table take while it grows, and the same without growth.
package struct ReplayBench: Sendable {
    package struct Figure: Sendable {
        package var subject: String
        package var insertions: Int
        /// Of those, the ones for which the table had no place: at its limit a few buckets are full, and most
        /// have room.
        package var refused: Int
        /// Nanoseconds.
        package var median: Int
        package var almostAll: Int
        package var longest: Int
        package var aboveMillisecond: Int
        /// Records that the table has places for at the end.
        package var capacity: Int
        /// Nanoseconds of processor time that a shard's lock is held for by the thread that grows the table:
        /// for one split.
        package var longestSplit: Int
        package var meanSplit: Int
    }

    private static let now: Int64 = 1_800_000_000
    private let path: String
    private let entries: Int
    private let callers: Int

    /// The file is made at `path`, and removed behind each measurement.
    package init(path: String, entries: Int, callers: Int) {
        (self.path, self.entries, self.callers) = (path, entries, callers)
    }

    /// First from a small table, then into one that was large from the start.
    package func run() async throws(Fault) -> [Figure] {
        let growing = try await measure("while it grows", placesAtFirst: 1 << 16)
        return [growing, try await measure("without growth", placesAtFirst: growing.capacity)]
    }

    private func measure(_ subject: String, placesAtFirst: Int) async throws(Fault) -> Figure {
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
            median: histogram.quantile(0.5), almostAll: histogram.quantile(0.9999), longest: histogram.longest,
            aboveMillisecond: histogram.aboveMillisecond, capacity: file.use(now: ReplayBench.now).capacity,
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
            do throws(Refusal) { try await file.insert(entry) } catch { histogram.refused += 1 }
            histogram.add(clock() - begin)
        }
        return histogram
    }

    /// Splits 64 buckets of each shard as ``ReplayGrower`` does. Processor time, since what else the machine
    /// does is not the lock's doing.
    private static func splits(of file: ReplayFile) -> [Int] {
        let (table, first) = (file.table, file.table.mostRows)
        do throws(Fault) {
            try table.mapping.extend(to: ReplayTable.fileBytes(rows: first + 64))
        } catch {
            // At its limit it is not split any more.
            return []
        }
        for start in [first, ReplayTable.source(of: first)] {
            table.mapping.populate(ReplayTable.fileBytes(rows: start)..<ReplayTable.fileBytes(rows: start + 64))
        }
        var times: [Int] = []
        for shard in 0..<ShardLocks.count {
            for _ in 0..<64 {
                let begin = clock(CLOCK_THREAD_CPUTIME_ID)
                file.locks.with(shard, repair: table.removeMoved) {
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
