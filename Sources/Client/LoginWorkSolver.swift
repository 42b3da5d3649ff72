import CountersignHandshake
import CountersignSeal
import CountersignWire

/// Solves the challenge in a refusal of a login that strangers keep out, and starts the login again with the
/// solution. Source: docs/protocol.md, "Proof of work"; decision 0055.
struct LoginWorkSolver: Sendable {
    let environment: ClientEnvironment
    /// What the user's call may still spend.
    let budget: WorkBudget

    /// Challenges of one login: the work may have become too easy while it was done.
    static let mostChallenges = 3
    /// Hashes between two looks at the clock.
    private static let step = 4_096
    /// Hashes after which the device knows how fast it is.
    private static let sample = 32_768

    /// The members that a start with a solution has in addition.
    typealias Members = [(name: String, value: JSONValue)]

    /// Makes the attempt; after a genuine refusal with a challenge that this device can solve in time, makes
    /// it again with the solution.
    func perform<Result: Sendable>(
        _ attempt: (Members) async throws(ClientOperationError) -> Result
    ) async throws(ClientOperationError) -> Result {
        var members: Members = []
        for _ in 0..<LoginWorkSolver.mostChallenges {
            do {
                return try await attempt(members)
            } catch {
                // Only a work offer that the authority has signed is solved.
                guard budget.left > 0, case .refused(let notice) = error, notice.isGenuine,
                    notice.code == Refusal.Code.tooManyAttempts.rawValue, let offer = notice.work,
                    let solution = try await solve(offer)
                else { throw error }
                members = [
                    ("work", ["challenge": .bytes(offer.challenge), "solution": .bytes(solution)])
                ]
            }
        }
        return try await attempt(members)
    }

    /// Nil if it would take this device too long. Runs in a task of its own, which gives way to others and
    /// ends with the caller's.
    func solve(_ offer: WorkOffer) async throws(ClientOperationError) -> [UInt8]? {
        guard
            let puzzles = WorkPuzzles(
                challenge: offer.challenge, puzzles: offer.puzzles, hashes: offer.hashes)
        else { return nil }
        let (time, budget) = (environment.time, budget)
        let search = Task.detached {
            await LoginWorkSolver.search(puzzles, of: offer, clock: time, within: budget)
        }
        let found = await withTaskCancellationHandler {
            await search.value
        } onCancel: {
            search.cancel()
        }
        guard !Task.isCancelled else { throw .cancelled }
        return found
    }

    private static func search(
        _ puzzles: WorkPuzzles, of offer: WorkOffer, clock: any ClientTime, within budget: WorkBudget
    ) async -> [UInt8]? {
        let (began, expected) = (clock.milliseconds, offer.puzzles * offer.hashes)
        let most = budget.left
        defer { budget.spend(clock.milliseconds - began) }
        var (solution, done) = ([UInt8](), 0)
        for puzzle in 0..<offer.puzzles {
            var attempt = puzzles.attempt(at: puzzle)
            var number: UInt64 = 0
            while !attempt.solves(number) {
                number += 1
                done += 1
                guard done.isMultiple(of: step) else { continue }
                guard !Task.isCancelled,
                    isWorthwhile(
                        done, of: expected, after: clock.milliseconds - began, within: most)
                else { return nil }
                await Task.yield()
            }
            solution += WorkPuzzles.Attempt.bytes(number)
        }
        return solution
    }

    private static func isWorthwhile(
        _ done: Int, of expected: Int, after milliseconds: Int64, within most: Int64
    ) -> Bool {
        guard milliseconds < most, done < 4 * expected else { return false }
        guard done >= sample else { return true }
        return milliseconds * Int64(max(expected - done, 0)) / Int64(done) <= most - milliseconds
    }
}

/// The time that one call of the user's may spend on work, over all of its logins and their challenges.
final class WorkBudget: Sendable {
    /// A device that would need longer waits instead, as it is told: the work of a minute on a battery is
    /// worth less than the wait.
    static let mostMilliseconds: Int64 = 20_000

    private let spent = Locked<Int64>(0)

    /// Milliseconds; never below 0.
    var left: Int64 { spent.with { max(WorkBudget.mostMilliseconds - $0, 0) } }

    func spend(_ milliseconds: Int64) { spent.with { $0 += max(milliseconds, 0) } }
}
