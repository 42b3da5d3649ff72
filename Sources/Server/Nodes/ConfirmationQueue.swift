import CountersignAuthority
import CountersignMemory
import CountersignWire

/// The callers whose changes wait until every live node follows them. Safe to share.
final class ConfirmationQueue: Sendable {
    private struct Waiter {
        /// Whether the store was asked for the change since the caller waits.
        var isAskedFor = false
        /// The change to wait for; nil until the store has said which it is.
        var change: Int64?
        let end: Int64
        let continuation: UnsafeContinuation<Refusal?, Never>
    }

    private struct State {
        var waiters: [Waiter] = []
        var isClosed = false
    }

    /// More than the writer lets wait.
    private static let most = 8_192
    private static let unconfirmed = Refusal(
        .unavailable, detail: "changed, but not every node has confirmed the change", retryAfter: 1)

    private let state = Locked(State())

    var isEmpty: Bool { state.with { $0.waiters.isEmpty } }

    /// Waits until `end`, a time of ``NodeLease/now``; `begun` is called once the caller waits.
    func wait(until end: Int64, begun: () -> Void) async throws(Refusal) {
        let refusal = await withUnsafeContinuation { (continuation: UnsafeContinuation<Refusal?, Never>) in
            let isTaken = state.with { state in
                guard !state.isClosed, state.waiters.count < ConfirmationQueue.most else { return false }
                state.waiters.append(Waiter(end: end, continuation: continuation))
                return true
            }
            if isTaken { begun() } else { continuation.resume(returning: ConfirmationQueue.unconfirmed) }
        }
        if let refusal { throw refusal }
    }

    /// Call before the store is asked for a view: it has the changes of all callers that wait by now.
    func beginView() {
        state.with { state in
            for place in state.waiters.indices { state.waiters[place].isAskedFor = true }
        }
    }

    /// Resumes the callers whose changes every node of a view follows.
    func resume(after view: NodeView) {
        let served = take { waiter in
            guard waiter.isAskedFor else { return false }
            let change = waiter.change ?? view.change
            waiter.change = change
            return view.confirmed.map { $0 >= change } ?? true
        }
        for continuation in served { continuation.resume(returning: nil) }
    }

    func refuse(waitingUntil now: Int64) {
        for late in take(where: { $0.end <= now }) { late.resume(returning: ConfirmationQueue.unconfirmed) }
    }

    /// Refuses all, now and from now on.
    func close() {
        state.with { $0.isClosed = true }
        refuse(waitingUntil: .max)
    }

    private func take(
        where isTaken: (inout Waiter) -> Bool
    ) -> [UnsafeContinuation<Refusal?, Never>] {
        state.with { state in
            var taken: [UnsafeContinuation<Refusal?, Never>] = []
            var rest: [Waiter] = []
            for var waiter in state.waiters {
                if isTaken(&waiter) { taken.append(waiter.continuation) } else { rest.append(waiter) }
            }
            state.waiters = rest
            return taken
        }
    }
}
