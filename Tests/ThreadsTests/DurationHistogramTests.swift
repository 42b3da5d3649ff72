import CountersignThreads
import Testing

@Suite("durations are counted in the bucket that holds them") struct DurationHistogramTests {
    @Test("a bound belongs to its bucket; what is longer than the last, to the last one")
    func bounds() {
        let histogram = DurationHistogram()
        var expected = DurationHistogram.Snapshot()
        #expect(histogram.snapshot == expected)
        for (place, bound) in DurationHistogram.bounds.enumerated() {
            histogram.record(nanoseconds: bound)
            expected.counts[place] += 1
            histogram.record(nanoseconds: bound + 1)
            expected.counts[place + 1] += 1
            expected.sum += 2 * bound + 1
        }
        histogram.record(nanoseconds: 0)
        expected.counts[0] += 1
        #expect(histogram.snapshot == expected)
        #expect(expected.count == UInt64(2 * DurationHistogram.bounds.count + 1))
        #expect(DurationHistogram.bounds == DurationHistogram.bounds.sorted())
    }

    @Test(
        "any duration is recorded in whole nanoseconds",
        arguments: [
            (Duration.nanoseconds(1_500), 1_500), (.milliseconds(2_250), 2_250_000_000),
            (Duration(secondsComponent: 0, attosecondsComponent: 1_999_999_999), 1), (.seconds(-1), 0),
            (.milliseconds(-1), 0),
        ] as [(Duration, UInt64)])
    func durations(duration: Duration, nanoseconds: UInt64) {
        let histogram = DurationHistogram()
        histogram.record(duration)
        #expect(histogram.snapshot.sum == nanoseconds && histogram.snapshot.count == 1)
    }

    @Test func snapshotsAddUp() {
        let (one, other) = (DurationHistogram(), DurationHistogram())
        one.record(nanoseconds: 1)
        other.record(nanoseconds: 1)
        other.record(nanoseconds: .max / 4)
        var sum = one.snapshot
        sum.add(other.snapshot)
        #expect(sum.count == 3 && sum.sum == 2 + .max / 4)
        #expect(sum.counts.first == 2 && sum.counts.last == 1)
    }
}
