// Proves that the barrier waits for the jobs that a loop has, also for those that a turn leaves over, and no
// longer than its bound.

import CountersignMemory
import Testing

@testable import CountersignHTTP

@Suite struct LoopBarrierTests {
    private static func spin(milliseconds: Int64) {
        let end = EventLoop.nanoseconds() + milliseconds * 1_000_000
        while EventLoop.nanoseconds() < end {}
    }

    /// Gives a loop jobs of which each takes longer than a turn, then waits for it on another loop. Returns how
    /// many of them have run when the wait ends.
    private func finished(ofJobs jobs: Int, each milliseconds: Int64, waiting most: Int) async throws -> Int {
        let (busy, own) = (try EventLoop(), try EventLoop())
        try busy.start(name: "busy")
        try own.start(name: "own")
        let count = Locked(0)
        let began = DispatchlessSignal()
        busy.perform {
            for _ in 0..<jobs {
                Task(executorPreference: busy) {
                    if count.with({ $0 }) == 0 { began.set() }
                    LoopBarrierTests.spin(milliseconds: milliseconds)
                    count.with { $0 += 1 }
                }
            }
        }
        began.wait()
        let waiting = Task(executorPreference: own) {
            await LoopBarrier.wait(for: [busy], atMost: most, on: own)
            return count.with { $0 }
        }
        let found = await waiting.value
        for loop in [busy, own] {
            loop.stop()
            loop.join()
        }
        return found
    }

    @Test func waitsForTheJobsThatTurnsLeaveOver() async throws {
        #expect(LoopTimeScheduler.turnLength < 20_000_000)
        #expect(try await finished(ofJobs: 5, each: 20, waiting: 20_000) == 5)
    }

    @Test func waitsNoLongerThanItMay() async throws {
        #expect(try await finished(ofJobs: 5, each: 200, waiting: 50) < 5)
    }
}
