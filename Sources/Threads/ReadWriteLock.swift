import Glibc

/// A lock that many threads hold for reading, or one for writing: for values that every loop reads with each
/// request and that seldom change. Safe to share: it is a lock.
@usableFromInline package final class ReadWriteLock: @unchecked Sendable {
    @usableFromInline let lock = UnsafeMutablePointer<pthread_rwlock_t>.allocate(capacity: 1)

    @inlinable package init() { pthread_rwlock_init(lock, nil) }

    @inlinable deinit {
        pthread_rwlock_destroy(lock)
        lock.deallocate()
    }

    @inlinable package func read<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure)
        -> Result
    {
        pthread_rwlock_rdlock(lock)
        defer { pthread_rwlock_unlock(lock) }
        return try body()
    }

    @inlinable package func write<Result, Failure: Error>(_ body: () throws(Failure) -> Result)
        throws(Failure) -> Result
    {
        pthread_rwlock_wrlock(lock)
        defer { pthread_rwlock_unlock(lock) }
        return try body()
    }
}
