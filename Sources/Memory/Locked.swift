#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// A value that several threads use in turn. Hold it for a look-up or an update, never across I/O.
///
/// Swift's own `Mutex` needs iOS 18, and the thread sanitizer does not understand it; it does
/// `os_unfair_lock` and `pthread_mutex_t`.
@usableFromInline package final class Locked<Value>: @unchecked Sendable {
    #if canImport(Darwin)
        @usableFromInline typealias Lock = os_unfair_lock
    #else
        @usableFromInline typealias Lock = pthread_mutex_t
    #endif

    // On the heap, because a lock must not be moved.
    @usableFromInline let lock: UnsafeMutablePointer<Lock>
    @usableFromInline var value: Value

    @inlinable package init(_ value: sending Value) {
        self.value = value
        lock = .allocate(capacity: 1)
        lock.initialize(to: Lock())
        #if !canImport(Darwin)
            pthread_mutex_init(lock, nil)
        #endif
    }

    @inlinable deinit {
        #if !canImport(Darwin)
            pthread_mutex_destroy(lock)
        #endif
        lock.deallocate()
    }

    #if !canImport(Darwin)
        /// For a condition variable that waits with this lock, as `Monitor` of CountersignThreads does.
        package var mutex: UnsafeMutablePointer<pthread_mutex_t> { lock }
    #endif

    /// Runs `body` while no other thread has the value. To ask for the value again from there is a deadlock.
    @inlinable package func with<Result, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        #if canImport(Darwin)
            os_unfair_lock_lock(lock)
            defer { os_unfair_lock_unlock(lock) }
        #else
            pthread_mutex_lock(lock)
            defer { pthread_mutex_unlock(lock) }
        #endif
        return try body(&value)
    }
}
