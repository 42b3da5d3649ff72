import CountersignHandshake
import CountersignOpaque
import CountersignSeal
import CountersignWire

/// Offers work to callers that an account's limit refuses, and checks their solutions. Keeps no state: a
/// challenge is authenticated under a key that is derived from the deployment's keys, so that a successor, or
/// another node, accepts it too. The caller ensures that each challenge is used once. Source: decision 0055.
package struct LoginWork: Sendable {
    /// A caller's solution.
    package struct Solution: Sendable {
        package let challenge: [UInt8]
        package let numbers: [UInt8]

        package init(challenge: [UInt8], numbers: [UInt8]) {
            self.challenge = challenge
            self.numbers = numbers
        }

        /// Identifies the challenge in a replay guard.
        package var replayKey: ShortBytes { ShortBytes(SHA256.digest(challenge.span)) }
    }

    package static let puzzles = 16
    package static let challengeCount = headCount + 32
    package static let solutionCount = puzzles * WorkPuzzles.numberCount
    /// Seconds for which a challenge is good.
    package static let lifetime: Int64 = 90
    /// Hashes of one puzzle before any was solved for this account: 131,072 for all sixteen.
    static let fewestHashes = 1 << 13
    /// Solutions of an account after which the work doubles.
    static let solutionsPerDoubling = 4
    static let mostDoublings = 7

    /// `version (1) ‖ expires (8) ‖ hashes (8) ‖ random (16)`, numbers big-endian.
    private static let headCount = 33
    private static let version: UInt8 = 1

    private let key: HMACSHA256

    package init(_ keys: AccountKeys) {
        let key = HKDFSHA512.expand(
            keys.keys.bytes, info: Array("countersign/1 login work".utf8), count: 32)
        self.key = key.withExposedBytes { HMACSHA256(key: $0) }
    }

    /// Hashes of one puzzle, given how many solutions of the account's bucket are used up.
    package static func hashes(used: Int) -> Int {
        fewestHashes << min(used / solutionsPerDoubling, mostDoublings)
    }

    package func offer(
        to account: AccountName, of app: AppName, used: Int, at now: Int64,
        random: some RandomSource = SystemRandom()
    ) -> WorkOffer {
        let (hashes, expires) = (LoginWork.hashes(used: used), now + LoginWork.lifetime)
        let head =
            [LoginWork.version] + LoginWork.bytes(UInt64(bitPattern: expires))
            + LoginWork.bytes(UInt64(hashes)) + random.bytes(16)
        return WorkOffer(
            challenge: head + mac(of: head, account: account, app: app), puzzles: LoginWork.puzzles,
            hashes: hashes, expires: expires)
    }

    /// When the solved challenge expires; nil if the challenge is not of this account, has expired, is too
    /// easy by now, or is not solved. A wrong challenge costs one MAC, a wrong solution one hash more.
    package func expiry(
        of solution: Solution, for account: AccountName, of app: AppName, used: Int, at now: Int64
    ) -> Int64? {
        let challenge = solution.challenge
        guard challenge.count == LoginWork.challengeCount, challenge[0] == LoginWork.version else {
            return nil
        }
        let head = Array(challenge[..<LoginWork.headCount])
        let expected = mac(of: head, account: account, app: app)
        let told = Array(challenge[LoginWork.headCount...])
        guard ConstantTime.equals(expected.span, told.span) == .equal else { return nil }
        let expires = Int64(bitPattern: LoginWork.number(head[1..<9]))
        let hashes = Int(truncatingIfNeeded: LoginWork.number(head[9..<17]))
        // Two doublings may happen while an honest caller works. More would let a caller collect challenges
        // while they are easy.
        guard now < expires, hashes << 2 >= LoginWork.hashes(used: used),
            let puzzles = WorkPuzzles(challenge: challenge, puzzles: LoginWork.puzzles, hashes: hashes),
            puzzles.isSolved(by: solution.numbers)
        else { return nil }
        return expires
    }

    /// The parts are unambiguous: neither app nor account contains a NUL, and the head has one length.
    private func mac(of head: [UInt8], account: AccountName, app: AppName) -> [UInt8] {
        let digest = key.authenticate((head + Array(app.description.utf8) + [0] + account.bytes).span)
        return digest.indices.map { digest[$0] }
    }

    private static func bytes(_ number: UInt64) -> [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: number >> UInt64(56 - 8 * $0)) }
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> UInt64 {
        bytes.reduce(0) { $0 << 8 | UInt64($1) }
    }
}
