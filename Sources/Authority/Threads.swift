import CountersignMemory
import CountersignWire
import Glibc

/// Threads for work that keeps a core or a disk busy. They are POSIX threads and not tasks: Swift's own
/// pool has one thread per core, and a thread that blocks there serves nothing else. Safe to share:
/// `threads` is filled in `init`, and emptied under the lock.
final class WorkerThreads: Sendable {
    private final class ThreadBody: Sendable {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    /// Filled in `init`; the first ``join()`` empties it.
    private let threads = Locked<[pthread_t]>([])

    /// Starts `count` threads that each run `life` once. `purpose` completes the error message if a thread
    /// cannot be started; the threads that were started are then detached.
    init(_ count: Int, purpose: String, body life: @escaping @Sendable () -> Void) throws(OperationalError) {
        let life = ThreadBody(life)
        for _ in 0..<count {
            var thread = pthread_t()
            let retained = Unmanaged.passRetained(life)
            let failure = pthread_create(
                &thread, nil,
                { context in
                    guard let context else { return nil }
                    Unmanaged<ThreadBody>.fromOpaque(context).takeRetainedValue().run()
                    return nil
                }, retained.toOpaque())
            guard failure == 0 else {
                retained.release()
                throw OperationalError(
                    .failed,
                    message: "cannot start a thread \(purpose): \(String(cString: strerror(failure)))")
            }
            threads.with { $0.append(thread) }
        }
    }

    /// Threads that were not joined end by themselves when their body returns.
    deinit { for thread in threads.with({ $0 }) { pthread_detach(thread) } }

    /// Waits for the threads to end.
    func join() {
        let ending = threads.with { threads in
            let ending = threads
            threads = []
            return ending
        }
        for thread in ending { pthread_join(thread, nil) }
    }
}

/// A pthread mutex with a condition: unlike Swift's `Mutex`, the thread sanitizer supports it. Safe to
/// share: it is a lock.
final class Monitor: @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    init() {
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(condition, nil)
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        condition.deallocate()
        mutex.deallocate()
    }

    func withLock<Result>(_ body: () -> Result) -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return body()
    }

    /// Releases the lock until another thread wakes this one, and holds it again when it returns. It may
    /// return spuriously.
    func wait() { pthread_cond_wait(condition, mutex) }

    func wakeOne() { pthread_cond_signal(condition) }

    func wakeAll() { pthread_cond_broadcast(condition) }
}

/// A pthread read-write lock: unlike Swift's `Mutex`, the thread sanitizer supports it. Safe to share: it
/// is a lock.
package final class ReadWriteLock: @unchecked Sendable {
    private let lock = UnsafeMutablePointer<pthread_rwlock_t>.allocate(capacity: 1)

    package init() { pthread_rwlock_init(lock, nil) }

    deinit {
        pthread_rwlock_destroy(lock)
        lock.deallocate()
    }

    package func read<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result
    {
        pthread_rwlock_rdlock(lock)
        defer { pthread_rwlock_unlock(lock) }
        return try body()
    }

    package func write<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result
    {
        pthread_rwlock_wrlock(lock)
        defer { pthread_rwlock_unlock(lock) }
        return try body()
    }
}

/// Identifies a job for cancellation, even before the job is in its queue. Its state changes only under the
/// queue's lock, which makes sharing it safe.
final class JobTicket: @unchecked Sendable {
    enum State { case new, queued, taken, cancelled }

    var state = State.new
}
