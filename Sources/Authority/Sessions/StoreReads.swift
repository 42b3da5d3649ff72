import CountersignThreads
import CountersignWire

/// Whether a lookup may read the store. An event loop must not, where the store is a server that may let it
/// wait.
package enum StoreReads: Sendable {
    case allowed
    case forbidden

    /// Throws ``OperationalError/needsStore`` unless reading is allowed.
    func require() throws(OperationalError) { if self == .forbidden { throw .needsStore } }
}

extension OperationalError {
    /// What was looked up is not in memory: read it where reading is allowed, and look again.
    package static let needsStore = OperationalError(
        .unreachable, message: "must be read from the store first")
}

/// Runs reads of the store that the routes of a server make: on the threads of a pool if the store is a
/// server, which may let a reader wait, and at once if it is a file.
package struct StoreReadThreads: Sendable {
    package let pool: WorkPool?

    /// `pool` is nil for a file.
    package init(_ pool: WorkPool?) { self.pool = pool }

    /// Refuses with `unavailable` if the store cannot be read, or too many reads wait.
    func run<Result: Sendable>(
        _ read: @escaping @Sendable () throws(OperationalError) -> Result
    ) async throws(Refusal) -> Result {
        let attempt: @Sendable () -> Swift.Result<Result, OperationalError> = {
            do throws(OperationalError) { return .success(try read()) } catch { return .failure(error) }
        }
        let result = if let pool { try await pool.run(attempt) } else { attempt() }
        switch result {
        case .success(let value): return value
        case .failure(let error): throw Refusal(.unavailable, detail: error.message, retryAfter: 5)
        }
    }
}
