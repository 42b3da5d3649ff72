import CountersignMemory
import Testing

@testable import CountersignThreads

/// A waiting thread gets the value once another thread has changed it, and no change is lost between threads.
@Suite struct MonitorTests {
    @Test func threadsChangeTheValueInTurn() throws {
        let sum = Monitor(0)
        try WorkerThreads(4, purpose: "to add on") { for _ in 0..<10_000 { sum.with { $0 += 1 } } }.join()
        #expect(sum.with { $0 } == 40_000)
    }

    @Test func waitReturnsAfterTheChange() throws {
        let value = Monitor(0)
        let threads = try WorkerThreads(purpose: "to change the value on") {
            for _ in 0..<3 {
                value.with { $0 += 1 }
                value.wakeOne()
            }
        }
        #expect(value.wait { $0 == 3 ? "reached" : nil } == "reached")
        threads.join()
    }

    @Test func waitWithALimitEndsWithoutAChange() {
        let value = Monitor(false)
        #expect(value.wait(milliseconds: 1_050) { $0 ? true : nil } == nil)
        value.with { $0 = true }
        #expect(value.wait(milliseconds: 0) { $0 ? true : nil } == true)
    }

    @Test func wakeAllWakesEachWaitingThread() throws {
        let isOpen = Monitor(false)
        let passed = Locked(0)
        let threads = try WorkerThreads(3, purpose: "to wait on") {
            isOpen.wait { $0 ? () : nil }
            passed.with { $0 += 1 }
        }
        isOpen.with { $0 = true }
        isOpen.wakeAll()
        threads.join()
        #expect(passed.with { $0 } == 3)
    }
}
