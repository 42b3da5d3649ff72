import Testing

@testable import CountersignAuthority

/// Stops whoever comes while it is closed, and notes how many changes each brought. Safe to share: changed under the lock.
final class TransactionGate: @unchecked Sendable {
    private let monitor = Monitor()
    private var isClosed = false
    private var seen: [Int] = []

    var groups: [Int] { monitor.hold { seen } }

    func close() { monitor.hold { isClosed = true } }

    func open() {
        monitor.hold {
            isClosed = false
            monitor.wakeAll()
        }
    }

    func pass(_ count: Int) {
        monitor.hold {
            seen.append(count)
            monitor.wakeAll()
            while isClosed { monitor.wait() }
        }
    }

    /// Until somebody has come to it; fails after some seconds.
    func waitUntilReached() async {
        for _ in 0..<2_000 where groups.isEmpty { try? await Task.sleep(for: .milliseconds(2)) }
        #expect(!groups.isEmpty)
    }
}
