import CountersignMemory
import CountersignThreads
import CountersignWire

/// A thread that runs a body at an interval, and once more when it is stopped: for work that waits for a
/// disk, so that no loop does.
final class Ticker: Sendable {
    private let seconds: Int
    private let body: @Sendable () -> Void
    private let isStopping = Monitor(false)
    private let thread = Locked<WorkerThreads?>(nil)

    init(every seconds: Int, body: @escaping @Sendable () -> Void) {
        self.seconds = seconds
        self.body = body
    }

    func start() throws(OperationalError) {
        let started = try WorkerThreads(purpose: "for regular work") { [self] in run() }
        thread.with { $0 = started }
    }

    /// Makes the body run once more and waits for the thread's end.
    func stop() {
        isStopping.with { $0 = true }
        isStopping.wakeOne()
        thread.with { $0 }?.join()
    }

    private func run() {
        var isLast = false
        while !isLast {
            isLast = isStopping.wait(milliseconds: seconds * 1_000) { $0 ? true : nil } ?? false
            body()
        }
    }
}
