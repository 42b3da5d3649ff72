import CountersignMemory
import Dispatch
import Synchronization

/// Passwords as people choose them: a name or a word, followed by digits. Generated from tables in this file,
/// the same in every run, so that guessing can be timed. It contains no passwords from leaks.
package struct WordList: Sendable {
    /// 20,000 different words.
    package let all: [String]

    package static let standard = WordList()

    private init() {
        var words: [String] = []
        words.reserveCapacity(WordList.count)
        // The shortest tails first, each with all stems: the most common forms come first, as in cracking
        // word lists.
        outer: for tail in WordList.tails {
            for stem in WordList.stems {
                words.append(stem + tail)
                if words.count == WordList.count { break outer }
            }
        }
        all = words
    }

    /// Any of them.
    package func random() -> String { all.randomElement() ?? all[0] }

    private static let count = 20_000

    /// 40 beginnings with 10 endings each.
    private static let stems = beginnings.flatMap { beginning in endings.map { beginning + $0 } }
    private static let beginnings = [
        "an", "be", "ca", "da", "el", "fa", "ga", "ha", "is", "jo", "ka", "la", "ma", "na", "ol", "pa", "ra",
        "sa",
        "ta",
        "va", "bri", "chri", "dra", "flo", "gre", "kri", "mar", "nor", "pau", "ste", "sun", "star", "moon",
        "blue",
        "red", "tiger", "dragon", "summer", "winter", "coffee",
    ]
    private static let endings = ["na", "lla", "ri", "to", "nie", "mo", "sha", "ker", "lin", "dy"]

    /// 50 tails, each of which is combined with every stem.
    private static let tails =
        ["", "1", "12", "123", "1234", "!", "1!", "01", "007", "99"] + (1980...2019).map(String.init)
}

/// Tries words until one fits.
enum WordListSearch {
    struct Outcome: Sendable {
        /// Nil where no word fits.
        var word: String?
        var tried: Int
        /// Words per second, on the cores that were used.
        var rate: Double

        var shownRate: String { "\(Int(rate)) guesses/s" }
    }

    /// Two threads, to leave cores for the victims and servers of other rows.
    private static let threads = 2

    /// `fits` is called on several threads concurrently.
    static func run(over words: [String], where fits: @Sendable (String) -> Bool) -> Outcome {
        let found = Locked<String?>(nil)
        let tried = Atomic(0)
        let began = ContinuousClock.now
        DispatchQueue.concurrentPerform(iterations: threads) { thread in
            for index in stride(from: thread, to: words.count, by: threads) {
                tried.add(1, ordering: .relaxed)
                if fits(words[index]) { found.with { $0 = words[index] } }
                // Checked only sometimes, so that the lock does not dominate the measured rate.
                if index % 64 < threads, found.with({ $0 != nil }) { break }
            }
        }
        let taken = (ContinuousClock.now - began) / .seconds(1)
        let count = tried.load(ordering: .relaxed)
        return Outcome(word: found.with { $0 }, tried: count, rate: Double(count) / max(taken, 1e-6))
    }
}

extension [String] {
    /// Splits the list into parts of `count` words, and returns the part that contains `word`: the share of
    /// one of many machines. The whole list where none contains it.
    func share(containing word: String, of count: Int) -> [String] {
        guard let place = firstIndex(of: word) else { return self }
        let start = place - place % count
        return Array(self[start..<Swift.min(start + count, self.count)])
    }
}
