import CountersignHandshake
import CountersignSQL
import CountersignWire
import Foundation
import Testing

@testable import CountersignAuthority

/// Work for a login: what is offered to whom, and what is accepted.
@Suite struct LoginWorkTests {
    private let folder = TemporaryFolder()
    private let work: LoginWork
    private let app: AppName
    private let bob: AccountName
    private let now: Int64 = 1_800_000_000

    init() throws {
        let data = try DataFolder("\(folder.path)/data", absence: .create)
        let deployment = try Deployment(
            folder: data, store: StorePlace.sqlite(path: data.database).open(),
            environment: ["COUNTERSIGN_MASTER_KEY": String(repeating: "ab", count: 32)])
        work = LoginWork(try AccountKeys(deployment))
        app = try #require(AppName("demo"))
        bob = try AccountName(normalizing: "bob")
    }

    private func solve(_ offer: WorkOffer) throws -> LoginWork.Solution {
        let puzzles = try #require(
            WorkPuzzles(challenge: offer.challenge, puzzles: offer.puzzles, hashes: offer.hashes))
        var numbers: [UInt8] = []
        for puzzle in 0..<offer.puzzles {
            var attempt = puzzles.attempt(at: puzzle)
            var number: UInt64 = 0
            while !attempt.solves(number) { number += 1 }
            numbers += WorkPuzzles.Attempt.bytes(number)
        }
        return LoginWork.Solution(challenge: offer.challenge, numbers: numbers)
    }

    @Test("a solution is good for its account and app until it expires, and while it is hard enough")
    func bound() throws {
        let offer = work.offer(to: bob, of: app, used: 0, at: now)
        #expect(offer.challenge.count == LoginWork.challengeCount && offer.expires == now + 90)
        let solution = try solve(offer)
        func holds(
            _ solution: LoginWork.Solution, _ name: String = "bob", _ other: String = "demo", used: Int = 0,
            at time: Int64? = nil
        ) throws -> Bool {
            let app = try #require(AppName(other))
            let account = try AccountName(normalizing: name)
            return work.expiry(of: solution, for: account, of: app, used: used, at: time ?? now)
                == offer.expires
        }
        #expect(try holds(solution) && holds(solution, at: now + 89))
        #expect(try !holds(solution, at: now + 90))
        #expect(try !holds(solution, "bobby") && !holds(solution, "bob", "demos"))
        #expect(
            try holds(solution, used: 8) && !holds(solution, used: 12), "two doublings later it is too easy")
        for index in [0, 1, 8, 12, 20, 40, 64] {
            var challenge = offer.challenge
            challenge[index] ^= 1
            #expect(
                try !holds(LoginWork.Solution(challenge: challenge, numbers: solution.numbers)), "\(index)")
        }
        var numbers = solution.numbers
        numbers[3] ^= 1
        #expect(try !holds(LoginWork.Solution(challenge: offer.challenge, numbers: numbers)))
        #expect(
            try !holds(LoginWork.Solution(challenge: offer.challenge, numbers: Array(numbers.dropLast(8)))))
        #expect(try !holds(LoginWork.Solution(challenge: [], numbers: solution.numbers)))
    }

    @Test("the work doubles with the use of the bucket, up to what a phone can do")
    func difficulty() {
        let hashes = (0..<40).map { LoginWork.hashes(used: $0) * LoginWork.puzzles }
        #expect(hashes[0] == 1 << 17 && hashes[3] == 1 << 17 && hashes[4] == 1 << 18)
        #expect(hashes[31] == 1 << 24 && hashes[39] == 1 << 24)
        #expect(hashes == hashes.sorted())
        let offers = (0..<2).map { _ in work.offer(to: bob, of: app, used: 5, at: now) }
        #expect(offers[0].challenge != offers[1].challenge && offers[0].hashes == 1 << 14)
    }

    @Test("puzzles out of bounds are none")
    func puzzleBounds() {
        for (puzzles, hashes) in [(0, 1), (65, 1), (1, 0), (1, (1 << 32) + 1)] {
            #expect(WorkPuzzles(challenge: [1], puzzles: puzzles, hashes: hashes) == nil)
        }
    }
}
