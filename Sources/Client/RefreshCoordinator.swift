import CountersignWire

/// The refreshes that run in this process: all requests that need the same refresh share one, and get its
/// result.
///
/// A refresh belongs to no single caller: a cancelled caller stops waiting, and the refresh continues for the
/// others.
final class RefreshCoordinator: Sendable {
    /// What is renewed, and whether the user is present. Requests with and without presence do not share a
    /// refresh.
    struct Request: Sendable, Hashable {
        enum Presence: Sendable, Hashable { case absent, present }

        let cause: Refresh.Cause
        let presence: Presence
    }

    private typealias Outcome = Result<Refresh.Outcome, ClientOperationError>

    private struct PendingRefresh {
        var waiting: [UInt64: CheckedContinuation<Outcome, Never>] = [:]
    }

    private struct State {
        var pending: [Request: PendingRefresh] = [:]
        var lastWaiter: UInt64 = 0
    }

    private let state = Locked(State())

    /// Waits for the running refresh for `request`, or starts `begin`.
    func join(
        _ request: Request,
        begin: @escaping @Sendable () async throws(ClientOperationError) -> Refresh.Outcome
    ) async throws(ClientOperationError) -> Refresh.Outcome {
        let number = state.with { state in
            state.lastWaiter += 1
            return state.lastWaiter
        }
        let outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<Outcome, Never>) in
                if add(continuation, number: number, request: request) { start(request, begin: begin) }
                // The task was cancelled before it was added.
                if Task.isCancelled { stopWaiting(number: number, request: request) }
            }
        } onCancel: {
            stopWaiting(number: number, request: request)
        }
        return try outcome.get()
    }

    /// Whether it is the first waiter.
    private func add(
        _ continuation: CheckedContinuation<Outcome, Never>, number: UInt64, request: Request
    ) -> Bool {
        state.with { state in
            let isFirst = state.pending[request] == nil
            state.pending[request, default: PendingRefresh()].waiting[number] = continuation
            return isFirst
        }
    }

    private func start(
        _ request: Request,
        begin: @escaping @Sendable () async throws(ClientOperationError) -> Refresh.Outcome
    ) {
        Task {
            let outcome: Outcome
            do throws(ClientOperationError) {
                outcome = .success(try await begin())
            } catch {
                outcome = .failure(error)
            }
            let waiting = state.with { $0.pending.removeValue(forKey: request)?.waiting ?? [:] }
            for continuation in waiting.values { continuation.resume(returning: outcome) }
        }
    }

    private func stopWaiting(number: UInt64, request: Request) {
        let continuation = state.with { $0.pending[request]?.waiting.removeValue(forKey: number) }
        continuation?.resume(returning: .failure(.cancelled))
    }
}
