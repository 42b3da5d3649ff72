/// Finds the bytes of a secret from the front, by how long it takes to be told that a guess at it is wrong: where the comparison ends at the
/// first byte that differs, the right one takes longest.
struct ByteByTime {
    /// Bytes of the secret.
    let length: Int
    /// How long the answer to a guess took.
    let time: ([UInt8]) throws(NetworkProblem) -> Duration

    /// The first `count` bytes as they seem. Whether they are right is for others to say: where nothing is to be seen, they are noise.
    func first(_ count: Int) throws(NetworkProblem) -> [UInt8] {
        var known: [UInt8] = []
        while known.count < count { known.append(try slowest(behind: known)) }
        return known
    }

    /// Noise only ever adds to a time, so each candidate is worth its shortest; of those that stay, ever fewer are measured again.
    private func slowest(behind known: [UInt8]) throws(NetworkProblem) -> UInt8 {
        var shortest = [Duration](repeating: .seconds(60), count: 256)
        var candidates = Array(UInt8.min...UInt8.max).shuffled()
        for left in ByteByTime.rounds {
            for candidate in candidates {
                let guess = known + [candidate] + [UInt8](repeating: 0, count: length - known.count - 1)
                shortest[Int(candidate)] = min(shortest[Int(candidate)], try time(guess))
            }
            candidates.sort { shortest[Int($0)] > shortest[Int($1)] }
            candidates.removeLast(candidates.count - left)
        }
        return candidates[0]
    }

    /// How many candidates stay after each round.
    private static let rounds = [32, 8, 8, 1]
}
