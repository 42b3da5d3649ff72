import CountersignSeal

/// Puzzles that take many hashes to solve and one to verify. Several small ones take a more even time than
/// one large one: with sixteen, the standard deviation is a quarter of the mean. Source: docs/protocol.md,
/// "Proof of work"; Back, "Hashcash", 2002.
package struct WorkPuzzles: Sendable {
    /// Bytes of the number that solves a puzzle.
    package static let numberCount = 8
    package static let mostPuzzles = 64
    /// Hashes of one puzzle, on average: a bound for what a client lets itself be asked.
    package static let mostHashes = 1 << 32

    private let seed: Digest32
    private let puzzles: Int
    /// A hash whose first eight bytes are at most this number is a solution.
    private let target: UInt64

    /// Nil for numbers out of bounds.
    package init?(challenge: [UInt8], puzzles: Int, hashes: Int) {
        guard (1...WorkPuzzles.mostPuzzles).contains(puzzles), (1...WorkPuzzles.mostHashes).contains(hashes)
        else { return nil }
        self.puzzles = puzzles
        target = UInt64.max / UInt64(hashes)
        var transcript = Transcript("login work")
        transcript.add(challenge)
        seed = SHA256.digest(transcript.bytes.span)
    }

    /// Whether `solution` has one number for each puzzle, each 8 bytes, big-endian. Ends at the first wrong
    /// one.
    package func isSolved(by solution: [UInt8]) -> Bool {
        guard solution.count == puzzles * WorkPuzzles.numberCount else { return false }
        for puzzle in 0..<puzzles {
            let bytes = solution[puzzle * WorkPuzzles.numberCount..<(puzzle + 1) * WorkPuzzles.numberCount]
            var attempt = attempt(at: puzzle)
            let number = bytes.reduce(0) { $0 << 8 | UInt64($1) }
            guard attempt.solves(number) else { return false }
        }
        return true
    }

    /// Trials of one puzzle.
    package func attempt(at puzzle: Int) -> Attempt { Attempt(seed: seed, puzzle: puzzle, target: target) }

    package struct Attempt: Sendable {
        /// `seed ‖ puzzle (1) ‖ number (8)`: one block of SHA-256.
        private var message: [UInt8]
        private let target: UInt64

        fileprivate init(seed: Digest32, puzzle: Int, target: UInt64) {
            message = seed.indices.map { seed[$0] } + [UInt8(truncatingIfNeeded: puzzle)]
            message += [UInt8](repeating: 0, count: WorkPuzzles.numberCount)
            self.target = target
        }

        package mutating func solves(_ number: UInt64) -> Bool {
            for index in 0..<8 {
                message[33 + index] = UInt8(truncatingIfNeeded: number >> UInt64(56 - 8 * index))
            }
            let digest = SHA256.digest(message.span)
            var first: UInt64 = 0
            for index in 0..<8 { first = first << 8 | UInt64(digest[index]) }
            return first <= target
        }

        /// The number as a solution has it.
        package static func bytes(_ number: UInt64) -> [UInt8] {
            (0..<8).map { UInt8(truncatingIfNeeded: number >> UInt64(56 - 8 * $0)) }
        }
    }
}
