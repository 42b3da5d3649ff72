import CountersignHTTP
import CountersignThreads

/// Event loops that were asked to do something, and have not done it yet.
struct PendingLoops: Sendable {
    private let count = Monitor(0)

    /// Runs `body` on the loop, which may be busy, not have started or have ended.
    func perform(on loop: EventLoop, body: @escaping @Sendable () -> Void) {
        count.with { $0 += 1 }
        loop.perform { [count] in
            body()
            count.with { $0 -= 1 }
            count.wakeOne()
        }
    }

    /// Returns once all have done it, or that time has passed: with the number of those that have not.
    func wait(milliseconds: Int) -> Int {
        count.wait(milliseconds: milliseconds) { $0 == 0 ? 0 : nil } ?? count.with { $0 }
    }
}
