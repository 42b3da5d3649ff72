import CountersignWire
import Glibc

/// Runs what is async on another thread while this one, the main one, waits: commands are not async, and need
/// not be.
package enum BlockingTask {
    package static func run<Result: Sendable>(
        _ body: @escaping @Sendable () async throws(OperationalError) -> Result
    ) throws(OperationalError) -> Result {
        let box = ResultBox<Result>()
        Task.detached {
            do throws(OperationalError) {
                box.finish(.success(try await body()))
            } catch {
                box.finish(.failure(error))
            }
        }
        return try box.wait()
    }

    /// Carries a result from a task to the thread that waits. Safe to share: it is written before the
    /// semaphore is posted, and read after.
    private final class ResultBox<Value: Sendable>: @unchecked Sendable {
        private let done = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)
        private var result: Result<Value, OperationalError> = .failure(
            OperationalError(.failed, message: "nothing came of it"))

        init() { sem_init(done, 0, 0) }

        deinit {
            sem_destroy(done)
            done.deallocate()
        }

        func finish(_ result: Result<Value, OperationalError>) {
            self.result = result
            sem_post(done)
        }

        func wait() throws(OperationalError) -> Value {
            while sem_wait(done) != 0 {}
            return try result.get()
        }
    }
}
