import CountersignThreads
import Testing

/// Quantiles of durations are estimated within their bucket.
@Suite struct DurationQuantileTests {
    @Test func aQuantileIsWithinItsBucket() throws {
        let histogram = DurationHistogram()
        #expect(histogram.snapshot.quantile(0.5) == nil)
        // 98 between 0.25 and 0.5 ms, and two between 10 and 25 ms.
        for _ in 0..<98 { histogram.record(nanoseconds: 400_000) }
        let before = histogram.snapshot
        for _ in 0..<2 { histogram.record(nanoseconds: 20_000_000) }
        let half = try #require(histogram.snapshot.quantile(0.5))
        #expect((0.000_25...0.000_5).contains(half))
        let tail = try #require(histogram.snapshot.quantile(0.99))
        #expect((0.010...0.025).contains(tail))
        #expect(histogram.snapshot.subtracting(before).count == 2)
        #expect(histogram.snapshot.subtracting(before).sum == 40_000_000)
    }

    @Test func whatIsLongerThanTheLastBoundIsTheLastBound() {
        let histogram = DurationHistogram()
        histogram.record(nanoseconds: .max / 4)
        #expect(histogram.snapshot.quantile(0.5) == 60)
    }
}
