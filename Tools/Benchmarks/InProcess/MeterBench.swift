import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignServer
import CountersignWire
import Glibc

/// The loop's cost of counting one request, in addition to judging it.
package struct MeterBench: Sendable {
    /// CPU time of one count: the median over the rounds.
    package let nanoseconds: Double
    /// Allocations of one count; nil if the platform does not count them.
    package let allocations: Double?

    private static let releases = 200
    private static let countsARound = 10_000
    private static let rounds = 101

    /// Counts for two hundred releases in turn, as many as a large app has in the field.
    package init() throws(OperationalError) {
        let tally = LoopRequestCounter(RequestMeter())
        var keys: [AppRelease] = []
        for number in 0..<MeterBench.releases { keys.append(try MeterBench.release(number)) }
        for key in keys { tally.countAccepted(key, under: .current) }
        var times: [Double] = []
        var allocations: [Double] = []
        for _ in 0..<MeterBench.rounds {
            let before = AllocationCounter.count
            let start = MeterBench.clock()
            for number in 0..<MeterBench.countsARound {
                tally.countAccepted(keys[number % MeterBench.releases], under: .current)
            }
            let end = MeterBench.clock()
            times.append(Double(end - start) / Double(MeterBench.countsARound))
            if let before, let after = AllocationCounter.count {
                allocations.append(Double(after - before) / Double(MeterBench.countsARound))
            }
        }
        nanoseconds = times.sorted()[MeterBench.rounds / 2]
        self.allocations = allocations.isEmpty ? nil : allocations.sorted()[MeterBench.rounds / 2]
    }

    private static func release(_ number: Int) throws(OperationalError) -> AppRelease {
        guard let id = KeyID("r_kQ2v8ZpL0aXw\(1000 + number)") else {
            throw OperationalError(.failed, message: "bench: key id")
        }
        return AppRelease(
            id: id, app: "bench", platform: "ios", version: "1.\(number)", scheme: .messageSignatures,
            policy: Policy(),
            key: SigningKey(Secret(random: 32)))
    }

    /// CPU time of this thread, so that other work on the machine does not count.
    private static func clock() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}
