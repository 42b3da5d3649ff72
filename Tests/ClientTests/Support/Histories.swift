import CountersignWire
import Foundation

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

    /// Of a kind, so many of them; `long` with `COUNTERSIGN_LONG=1`.
    init(_ kind: String, _ count: Int, long: Int) {
        let given = ProcessInfo.processInfo.environment["COUNTERSIGN_SEED"].flatMap(UInt64.init)
        let seed = given ?? .random(in: 0...UInt64.max)
        var seeds = SplitMix64(seed: seed)
        all = (1...(Histories.isLong ? long : count)).map { number in
            Drawn(name: "history \(number) of seed \(seed)", steps: SplitMix64(seed: seeds.next()))
        }
        (self.kind, self.seed) = (kind, seed)
    }

    static var isLong: Bool { ProcessInfo.processInfo.environment["COUNTERSIGN_LONG"] == "1" }

    /// The line that script/test shows.
    func report(steps: Int) {
        print("measured: \(kind): \(all.count) histories, \(steps) steps, seed \(seed)")
    }
}
