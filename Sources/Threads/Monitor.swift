import CountersignMemory
import Glibc

/// A value that several threads use in turn, and wait for to change: a ``Locked`` with a condition variable.
/// Where no thread waits, use `Locked`.
///
/// Safe to share: `value` is accessed under the lock only.
package final class Monitor<Value>: @unchecked Sendable {
    // `Locked.with` would be one access to its value for as long as a wait lasts; only its mutex is used.
    private let lock = Locked(())
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var value: Value

    package init(_ value: sending Value) {
        self.value = value
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        defer { pthread_condattr_destroy(&attributes) }
        // A wait with a limit must not depend on the system time, which can be set.
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(condition, &attributes)
    }

    deinit {
        pthread_cond_destroy(condition)
        condition.deallocate()
    }

    /// Runs `body` while no other thread has the value. To ask for the value again from there is a deadlock;
    /// ``wakeOne()`` and ``wakeAll()`` may be called there.
    package func with<Result, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        pthread_mutex_lock(lock.mutex)
        defer { pthread_mutex_unlock(lock.mutex) }
        return try body(&value)
    }

    /// Calls `body` now and after each wake-up, until it returns a result. Between the calls the thread
    /// sleeps without the lock.
    package func wait<Result>(until body: (inout Value) -> Result?) -> Result {
        pthread_mutex_lock(lock.mutex)
        defer { pthread_mutex_unlock(lock.mutex) }
        // Each call of `body` is an access of its own: one that spanned the wait would overlap with those of
        // other threads.
        while true {
            if let result = body(&value) { return result }
            pthread_cond_wait(condition, lock.mutex)
        }
    }

    /// The same for at most that time; nil once it has passed.
    package func wait<Result>(milliseconds: Int, until body: (inout Value) -> Result?) -> Result? {
        var deadline = timespec()
        clock_gettime(CLOCK_MONOTONIC, &deadline)
        let time = max(milliseconds, 0)
        let nanoseconds = deadline.tv_nsec + time % 1_000 * 1_000_000
        deadline.tv_sec += time / 1_000 + nanoseconds / 1_000_000_000
        deadline.tv_nsec = nanoseconds % 1_000_000_000
        pthread_mutex_lock(lock.mutex)
        defer { pthread_mutex_unlock(lock.mutex) }
        while true {
            if let result = body(&value) { return result }
            if pthread_cond_timedwait(condition, lock.mutex, &deadline) == ETIMEDOUT {
                // The wake-up may have come at the same moment.
                return body(&value)
            }
        }
    }

    package func wakeOne() { pthread_cond_signal(condition) }

    package func wakeAll() { pthread_cond_broadcast(condition) }
}
