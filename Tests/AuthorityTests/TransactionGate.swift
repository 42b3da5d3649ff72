import Testing

@testable import CountersignAuthority

/// Blocks the threads that reach it while it is closed, and records the number of changes of each group. Safe
/// to share: changed under the lock.
final class TransactionGate: @unchecked Sendable {
    private let monitor = Monitor()
    private var isClosed = false
    private var seen: [Int] = []

    var groups: [Int] { monitor.withLock { seen } }

    func close() { monitor.withLock { isClosed = true } }

    func open() {
        monitor.withLock {
            isClosed = false
            monitor.wakeAll()
        }
    }

    func pass(_ count: Int) {
        monitor.withLock {
            seen.append(count)
            monitor.wakeAll()
            while isClosed { monitor.wait() }
        }
    }

    /// Waits until a thread has reached the gate; fails after some seconds.
    func waitUntilReached() async {
        for _ in 0..<2_000 where groups.isEmpty { try? await Task.sleep(for: .milliseconds(2)) }
        #expect(!groups.isEmpty)
    }
}
