/// Jobs that wait for worker threads, first in, first out, and never more than its bound. The jobs of
/// parties take turns: a party's second job comes after the first job of each other party. A job can be
/// cancelled until a thread has taken it.
///
/// The queue never calls a job: each job leaves it exactly once, by the return value of one function, so that
/// a continuation in it is resumed exactly once, and outside the lock.
package final class BoundedQueue<Job: Sendable>: Sendable {
    package enum Admission: Sendable, Equatable {
        case queued
        /// The queue is full; the jobs that wait and the threads that work.
        case full(Load)
        case closed
        /// The ticket was cancelled before.
        case cancelled
    }

    package struct Load: Sendable, Equatable {
        package var waiting: Int
        package var busy: Int
    }

    private struct State {
        /// In the order of their rounds.
        var waiting: [(ticket: JobTicket, job: Job, party: String?, round: Int)] = []
        /// The round of the job that was taken last.
        var round = 0
        var busy = 0
        var isClosed = false

        var load: Load { Load(waiting: waiting.count, busy: busy) }
    }

    private let bound: Int
    private let workers: Int
    private let state: Monitor<State>

    /// At most `bound` jobs wait, and one more for each of the `workers` that is free: it takes its job
    /// soon.
    package init(bound: Int, workers: Int = 0) {
        self.bound = bound
        self.workers = workers
        state = Monitor(State())
    }

    package var load: Load { state.with { $0.load } }

    /// A job without a `party` waits for no turn.
    package func add(_ job: Job, ticket: JobTicket, for party: String? = nil) -> Admission {
        state.with { state in
            guard !state.isClosed else { return .closed }
            guard ticket.state != .cancelled else { return .cancelled }
            guard state.waiting.count < bound + max(workers - state.busy, 0) else { return .full(state.load) }
            ticket.state = .queued
            let last = party.flatMap { party in state.waiting.last { $0.party == party }?.round }
            let round = max(last.map { $0 + 1 } ?? 0, state.round)
            let place = state.waiting.firstIndex { $0.round > round } ?? state.waiting.count
            state.waiting.insert((ticket, job, party, round), at: place)
            self.state.wakeOne()
            return .queued
        }
    }

    /// Removes the job of that ticket if no thread has taken it; if it has not been added yet,
    /// ``add(_:ticket:)`` will refuse it.
    package func cancel(_ ticket: JobTicket) -> Job? {
        state.with { state in
            let wasQueued = ticket.state == .queued
            if ticket.state != .taken { ticket.state = .cancelled }
            guard wasQueued, let index = state.waiting.firstIndex(where: { $0.ticket === ticket }) else {
                return nil
            }
            return state.waiting.remove(at: index).job
        }
    }

    /// Waits for jobs, and takes up to `most`; none once the queue is closed and empty. The thread counts as
    /// busy until it calls ``didFinish()``.
    package func take(most: Int = 1) -> [Job] {
        state.wait { state in
            guard !state.waiting.isEmpty else { return state.isClosed ? [] : nil }
            let taken = state.waiting.prefix(most)
            for entry in taken { entry.ticket.state = .taken }
            state.round = taken.last?.round ?? state.round
            state.waiting.removeFirst(taken.count)
            state.busy += 1
            return taken.map(\.job)
        }
    }

    /// The calling thread is free again; call it once after each ``take(most:)`` that returned jobs.
    package func didFinish() { state.with { $0.busy -= 1 } }

    /// Refuses further jobs. The waiting ones can still be taken; after the last, ``take(most:)`` returns
    /// none.
    package func close() {
        state.with { $0.isClosed = true }
        state.wakeAll()
    }

    /// Refuses further jobs, and removes the waiting ones.
    package func closeAndRemoveAll() -> [Job] {
        let removed = state.with { state in
            state.isClosed = true
            let removed = state.waiting
            state.waiting = []
            for entry in removed { entry.ticket.state = .taken }
            return removed
        }
        state.wakeAll()
        return removed.map(\.job)
    }
}

/// Identifies a job for cancellation, even before the job is in its queue. Its state changes only under the
/// queue's lock, which makes sharing it safe.
package final class JobTicket: @unchecked Sendable {
    fileprivate enum State { case new, queued, taken, cancelled }

    fileprivate var state = State.new

    package init() {}
}
