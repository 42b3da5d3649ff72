import CountersignWire

/// The refreshes that this process has under way: however many requests need one, one is made, and all have its outcome.
///
/// It is nobody's own: who is cancelled stops waiting, and the refresh goes on for the others.
final class RefreshesUnderWay: Sendable {
    /// What is to be renewed, and whether with somebody present, whose the others are not.
    struct Errand: Sendable, Hashable {
        enum Presence: Sendable, Hashable { case nobody, somebody }

        let cause: Refresh.Cause
        let presence: Presence
    }

    private typealias Outcome = Result<Void, ClientProblem>

    private struct Flight {
        var waiting: [UInt64: CheckedContinuation<Outcome, Never>] = [:]
    }

    private struct Flights {
        var flights: [Errand: Flight] = [:]
        var lastWaiter: UInt64 = 0
    }

    private let flights = Locked(Flights())

    /// Waits for the refresh for `errand` that is under way, or for `begin`.
    func join(
        _ errand: Errand, _ begin: @escaping @Sendable () async throws(ClientProblem) -> Void
    ) async throws(ClientProblem) {
        let number = flights.with { flights in
            flights.lastWaiter += 1
            return flights.lastWaiter
        }
        let outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<Outcome, Never>) in
                if add(continuation, number, errand) { fly(errand, begin) }
                // Cancelled before there was anything to leave.
                if Task.isCancelled { leave(number, errand) }
            }
        } onCancel: {
            leave(number, errand)
        }
        try outcome.get()
    }

    /// Whether it is the first.
    private func add(
        _ continuation: CheckedContinuation<Outcome, Never>, _ number: UInt64, _ errand: Errand
    ) -> Bool {
        flights.with { flights in
            let isFirst = flights.flights[errand] == nil
            flights.flights[errand, default: Flight()].waiting[number] = continuation
            return isFirst
        }
    }

    private func fly(
        _ errand: Errand, _ begin: @escaping @Sendable () async throws(ClientProblem) -> Void
    ) {
        Task {
            let outcome: Outcome
            do throws(ClientProblem) {
                outcome = .success(try await begin())
            } catch {
                outcome = .failure(error)
            }
            let waiting = flights.with { $0.flights.removeValue(forKey: errand)?.waiting ?? [:] }
            for continuation in waiting.values { continuation.resume(returning: outcome) }
        }
    }

    private func leave(_ number: UInt64, _ errand: Errand) {
        let continuation = flights.with { $0.flights[errand]?.waiting.removeValue(forKey: number) }
        continuation?.resume(returning: .failure(.cancelled))
    }
}
