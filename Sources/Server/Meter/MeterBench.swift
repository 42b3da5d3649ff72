import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Glibc

/// What counting one request costs the loop, on top of its verdict.
package struct MeterBench: Sendable {
    /// CPU time of one count: the median over the rounds.
    package let nanoseconds: Double
    /// For one count; nil where nothing counts them.
    package let allocations: Double?

    private static let releases = 200
    private static let countsARound = 10_000
    private static let rounds = 101

    /// Counts for two hundred releases in turn, as many as a large app has in the field.
    package init() throws(Fault) {
        let tally = Tally(Meter())
        var keys: [ReleaseKey] = []
        for number in 0..<MeterBench.releases { keys.append(try MeterBench.release(number)) }
        for key in keys { tally.accept(key, under: .current) }
        var times: [Double] = []
        var allocations: [Double] = []
        for _ in 0..<MeterBench.rounds {
            let before = AllocationCounter.count
            let start = MeterBench.clock()
            for number in 0..<MeterBench.countsARound {
                tally.accept(keys[number % MeterBench.releases], under: .current)
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

    private static func release(_ number: Int) throws(Fault) -> ReleaseKey {
        guard let id = KeyID("r_kQ2v8ZpL0aXw\(1000 + number)") else { throw Fault(.failed, "bench: key id") }
        return ReleaseKey(
            id: id, app: "bench", platform: "ios", version: "1.\(number)", scheme: .messageSignatures, policy: Policy(),
            key: SigningKey(Secret(random: 32)))
    }

    /// CPU time of this thread: other work on the machine is not ours to count.
    private static func clock() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}
