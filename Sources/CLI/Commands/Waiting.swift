import CountersignWire
import Glibc

/// Async work within a command, which is not async and need not be: done on another thread while this one, the main one, waits.
enum Waiting {
    static func forResult<Value: Sendable>(
        _ work: @escaping @Sendable () async throws(Fault) -> Value
    ) throws(Fault) -> Value {
        let box = Box<Value>()
        Task.detached {
            do throws(Fault) {
                box.finish(.success(try await work()))
            } catch {
                box.finish(.failure(error))
            }
        }
        return try box.wait()
    }

    /// Carries a result from a task to the thread that waits. Safe to share: it is written before the semaphore is
    /// posted, and read after.
    private final class Box<Value: Sendable>: @unchecked Sendable {
        private let done = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)
        private var result: Result<Value, Fault>?

        init() { sem_init(done, 0, 0) }

        deinit {
            sem_destroy(done)
            done.deallocate()
        }

        func finish(_ result: Result<Value, Fault>) {
            self.result = result
            sem_post(done)
        }

        func wait() throws(Fault) -> Value {
            while sem_wait(done) != 0 {}
            guard let result else { throw Fault(.failed, "the work ended without a result") }
            return try result.get()
        }
    }
}
