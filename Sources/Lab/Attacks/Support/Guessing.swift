import Dispatch
import Synchronization

/// Tries words until one fits.
enum Guessing {
    struct Found: Sendable {
        /// Nil where none fits.
        var word: String?
        var tried: Int
        /// Guesses a second, on the cores that were used.
        var rate: Double

        var shownRate: String { "\(Int(rate)) guesses/s" }
    }

    /// Two, since the other rows' victims and servers want to live, too.
    private static let threads = 2

    /// `fits` is asked on several threads at once.
    static func search(_ words: [String], _ fits: @Sendable (String) -> Bool) -> Found {
        let found = Mutex<String?>(nil)
        let tried = Atomic(0)
        let began = ContinuousClock.now
        DispatchQueue.concurrentPerform(iterations: threads) { thread in
            for index in stride(from: thread, to: words.count, by: threads) {
                tried.add(1, ordering: .relaxed)
                if fits(words[index]) { found.withLock { $0 = words[index] } }
                // Looked at now and then, so that the lock is not what is measured.
                if index % 64 < threads, found.withLock({ $0 != nil }) { break }
            }
        }
        let taken = (ContinuousClock.now - began) / .seconds(1)
        let count = tried.load(ordering: .relaxed)
        return Found(word: found.withLock { $0 }, tried: count, rate: Double(count) / max(taken, 1e-6))
    }
}

extension [String] {
    /// Of all words cut into parts of `count`, the one with `word` in it: what one of many machines is given to try. All where none has it.
    func share(containing word: String, of count: Int) -> [String] {
        guard let place = firstIndex(of: word) else { return self }
        let start = place - place % count
        return Array(self[start..<Swift.min(start + count, self.count)])
    }
}
