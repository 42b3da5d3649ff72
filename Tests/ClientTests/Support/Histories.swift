import CountersignWire
import TestRounds

/// Histories that are drawn from one seed, which is said whatever comes of them: `COUNTERSIGN_SEED` has the
/// same ones drawn again. What tasks do at once is put in order by the scheduler, so that a history is the
/// same one in what is drawn, not in every race.
struct Histories {
    struct Drawn: Sendable {
        /// Where a failure says it was.
        let name: String
        let steps: SplitMix64
    }

    let all: [Drawn]
    private let kind: String
    private let seed: UInt64

    /// Of a kind, so many of them; `long` in the long run.
    init(_ kind: String, _ count: Int, long: Int) {
        let seed = testSeed()
        var seeds = SplitMix64(seed: seed)
        all = (1...(rounds(long, short: count))).map { number in
            Drawn(name: "history \(number) of seed \(seed)", steps: SplitMix64(seed: seeds.next()))
        }
        (self.kind, self.seed) = (kind, seed)
    }

    /// The line that script/test shows.
    func report(steps: Int) {
        print("measured: \(kind): \(all.count) histories, \(steps) steps, seed \(seed)")
    }
}
