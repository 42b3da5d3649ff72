import Synchronization

/// Counts durations in fixed buckets, as Prometheus' histograms do.
///
/// Unchecked, because of the pointers: the counts live from `init` to `deinit` and are accessed only by
/// atomic operations; the bounds live as long as the process and do not change. One thread records; any
/// other may read, and sees each number whole. With a single writer, counting is a load and a store, and
/// waits for no lock.
package final class DurationHistogram: @unchecked Sendable {
    /// The buckets' upper bounds in nanoseconds, ascending; a last bucket holds what is longer.
    package static let bounds: [UInt64] = [
        100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000, 25_000_000, 50_000_000,
        100_000_000, 250_000_000, 500_000_000, 1_000_000_000, 2_500_000_000, 10_000_000_000, 60_000_000_000,
    ]

    /// The counts at one time.
    package struct Snapshot: Sendable, Equatable {
        /// For each bound, and for what is longer than the last, how many durations are in that bucket alone.
        package var counts = [UInt64](repeating: 0, count: DurationHistogram.bounds.count + 1)
        /// Of all durations, in nanoseconds.
        package var sum: UInt64 = 0

        package init() {}

        package var count: UInt64 { counts.reduce(0, &+) }

        package mutating func add(_ other: Snapshot) {
            for index in counts.indices { counts[index] &+= other.counts[index] }
            sum &+= other.sum
        }

        /// What came since `earlier`, an earlier snapshot of the same histograms.
        package func subtracting(_ earlier: Snapshot) -> Snapshot {
            var rest = self
            for index in counts.indices { rest.counts[index] &-= earlier.counts[index] }
            rest.sum &-= earlier.sum
            return rest
        }

        /// The duration in seconds that `share` (0 to 1) of all do not exceed, estimated within its bucket as
        /// Prometheus' `histogram_quantile` does; nil without durations.
        package func quantile(_ share: Double) -> Double? {
            let total = count
            guard total > 0 else { return nil }
            let rank = share * Double(total)
            var below: UInt64 = 0
            for (index, bound) in DurationHistogram.bounds.enumerated() {
                let here = counts[index]
                if here > 0, Double(below &+ here) >= rank {
                    let start = index == 0 ? 0 : Double(DurationHistogram.bounds[index - 1])
                    let part = (rank - Double(below)) / Double(here)
                    return (start + (Double(bound) - start) * part) / 1e9
                }
                below &+= here
            }
            return Double(DurationHistogram.bounds[DurationHistogram.bounds.count - 1]) / 1e9
        }
    }

    private static let sumPlace = bounds.count + 1
    /// One for each bucket, then the sum.
    private let cells: UnsafeMutablePointer<Atomic<UInt64>>
    /// The elements of ``bounds``, without the array's bookkeeping: one copy for all histograms, which is
    /// never written again.
    private nonisolated(unsafe) static let sharedBounds: UnsafePointer<UInt64> = {
        let memory = UnsafeMutablePointer<UInt64>.allocate(capacity: bounds.count)
        memory.initialize(from: bounds, count: bounds.count)
        return UnsafePointer(memory)
    }()
    private let bounds = DurationHistogram.sharedBounds

    package init() {
        cells = .allocate(capacity: DurationHistogram.sumPlace + 1)
        for index in 0...DurationHistogram.sumPlace { (cells + index).initialize(to: Atomic(0)) }
    }

    deinit {
        cells.deinitialize(count: DurationHistogram.sumPlace + 1)
        cells.deallocate()
    }

    /// Call on the one thread that records.
    package func record(nanoseconds: UInt64) {
        var place = 0
        // Most durations are short.
        while place < DurationHistogram.sumPlace - 1, nanoseconds > bounds[place] { place &+= 1 }
        add(1, at: place)
        add(nanoseconds, at: DurationHistogram.sumPlace)
    }

    /// The same. A negative duration counts as 0.
    package func record(_ duration: Duration) {
        let (seconds, attoseconds) = duration.components
        record(
            nanoseconds: UInt64(max(0, seconds)) &* 1_000_000_000
                &+ UInt64(max(0, attoseconds / 1_000_000_000)))
    }

    private func add(_ number: UInt64, at place: Int) {
        let cell = cells + place
        cell.pointee.store(cell.pointee.load(ordering: .relaxed) &+ number, ordering: .relaxed)
    }

    /// The present counts. What is recorded meanwhile may be in the sum and not yet in a bucket, or the other
    /// way around.
    package var snapshot: Snapshot {
        var snapshot = Snapshot()
        for index in snapshot.counts.indices {
            snapshot.counts[index] = cells[index].load(ordering: .relaxed)
        }
        snapshot.sum = cells[DurationHistogram.sumPlace].load(ordering: .relaxed)
        return snapshot
    }
}
