import Dispatch

/// Where the lab waits for processes and files: the threads that tasks run on are few.
package enum Blocking {
    /// What `work` gives, or throws.
    package static func run<Value: Sendable>(
        _ work: @escaping @Sendable () throws(StageFault) -> Value
    ) async throws(StageFault) -> Value {
        let result = await withCheckedContinuation {
            (continuation: CheckedContinuation<Result<Value, StageFault>, Never>) in
            DispatchQueue.global().async {
                let result = Result { () throws(StageFault) in try work() }
                continuation.resume(returning: result)
            }
        }
        return try result.get()
    }
}
