import CountersignAuthority
import CountersignWire
import Testing

@testable import CountersignServer

/// A change is acknowledged once every live node follows it, and refused if that cannot be known in time.
@Suite struct ConfirmationQueueTests {
    private let queue = ConfirmationQueue()

    private func view(_ change: Int64, confirmed: Int64?) -> NodeView {
        NodeView(
            change: change, generation: 0, others: confirmed == nil ? 0 : 1, confirmed: confirmed)
    }

    /// The outcome of a caller that waits while `body` runs.
    private func outcome(
        until end: Int64 = .max, while body: @escaping @Sendable (ConfirmationQueue) -> Void
    ) async -> Refusal.Code? {
        let queue = queue
        do throws(Refusal) {
            try await queue.wait(until: end) { body(queue) }
            return nil
        } catch {
            return error.code
        }
    }

    @Test func alone() async {
        let view = view(5, confirmed: nil)
        let outcome = await outcome {
            $0.beginView()
            $0.resume(after: view)
            #expect($0.isEmpty)
        }
        #expect(outcome == nil)
    }

    @Test func waitsForTheOthers() async {
        let (behind, newer, there) = (view(5, confirmed: 4), view(9, confirmed: 4), view(9, confirmed: 5))
        let outcome = await outcome {
            $0.beginView()
            $0.resume(after: behind)
            #expect(!$0.isEmpty)
            // Changes since then are not waited for.
            $0.beginView()
            $0.resume(after: newer)
            #expect(!$0.isEmpty)
            $0.beginView()
            $0.resume(after: there)
            #expect($0.isEmpty)
        }
        #expect(outcome == nil)
    }

    /// A view from before the caller's change does not show it.
    @Test func anEarlierViewDoesNotCount() async {
        let (before, after) = (view(5, confirmed: 5), view(6, confirmed: 6))
        let outcome = await outcome {
            $0.resume(after: before)
            #expect(!$0.isEmpty)
            $0.beginView()
            $0.resume(after: after)
        }
        #expect(outcome == nil)
    }

    @Test func endsInTime() async {
        let outcome = await outcome(until: 100) {
            $0.refuse(waitingUntil: 99)
            #expect(!$0.isEmpty)
            $0.refuse(waitingUntil: 100)
        }
        #expect(outcome == .unavailable)
    }

    @Test func isClosed() async {
        let first = await outcome { $0.close() }
        let second = await outcome { _ in Issue.record("begun") }
        #expect(first == .unavailable && second == .unavailable)
    }
}
