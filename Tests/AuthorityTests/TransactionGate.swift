import CountersignThreads
import Testing
import Waiting

@testable import CountersignAuthority

/// Blocks the threads that reach it while it is closed, and records the number of changes of each group.
final class TransactionGate: Sendable {
    private struct State {
        var isClosed = false
        var seen: [Int] = []
    }

    private let state = Monitor(State())

    var groups: [Int] { state.with { $0.seen } }

    func close() { state.with { $0.isClosed = true } }

    func open() {
        state.with { $0.isClosed = false }
        state.wakeAll()
    }

    func pass(_ count: Int) {
        state.with { $0.seen.append(count) }
        state.wakeAll()
        state.wait { $0.isClosed ? nil : () }
    }

    /// Waits until a thread has reached the gate.
    func waitUntilReached() async { await until("a thread at the gate") { !groups.isEmpty } }
}
