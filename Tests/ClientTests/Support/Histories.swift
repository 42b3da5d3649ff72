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

    private let count: Int
    private let kind: String
    private let seed: UInt64

    /// Of a kind, so many of them; `long` in the long run.
    init(_ kind: String, _ count: Int, long: Int) {
        (self.kind, self.count, seed) = (kind, rounds(long, short: count), testSeed())
    }

    /// Runs each history, and then further ones until `isCovered`, up to ten times as many: whether a history
    /// contains an event is chance, so a fixed number of them could miss it. Returns how many ran.
    func run(until isCovered: () -> Bool = { true }, _ run: (Drawn) async throws -> Void) async throws -> Int
    {
        var seeds = SplitMix64(seed: seed)
        var number = 0
        while number < count || (number < 10 * count && !isCovered()) {
            number += 1
            try await run(
                Drawn(name: "history \(number) of seed \(seed)", steps: SplitMix64(seed: seeds.next())))
        }
        return number
    }

    /// The line that script/test shows.
    func report(_ count: Int, steps: Int) {
        print("measured: \(kind): \(count) histories, \(steps) steps, seed \(seed)")
    }
}
