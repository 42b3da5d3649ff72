import CountersignTestKit

/// Waits where waiting costs a thread, so that no thread of Swift's pool does.
package enum Blocking {
    /// On a new thread: what `work` gives, or throws.
    package static func run<Value: Sendable, Failure: Error>(
        _ work: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let result = await withCheckedContinuation { (waiting: CheckedContinuation<Result<Value, Failure>, Never>) in
            TestThread.start {
                let result = Result { () throws(Failure) in try work() }
                waiting.resume(returning: result)
            }
        }
        return try result.get()
    }
}
