import Glibc

/// A lock for each sixty-fourth of the table, so that loops seldom meet. POSIX locks, which the thread sanitizer
/// understands. Safe to share: the memory is never replaced, and holds nothing but locks.
final class ShardLocks: @unchecked Sendable {
    static let count = 64
    /// A cache line, so that neighbours do not slow each other down.
    private static let stride = 64

    private let start: UnsafeMutableRawPointer

    init() {
        start = .allocate(byteCount: ShardLocks.count * ShardLocks.stride, alignment: ShardLocks.stride)
        for shard in 0..<ShardLocks.count { pthread_mutex_init(lock(shard), nil) }
    }

    deinit {
        for shard in 0..<ShardLocks.count { pthread_mutex_destroy(lock(shard)) }
        start.deallocate()
    }

    func with<Result>(_ shard: Int, _ body: () -> Result) -> Result {
        pthread_mutex_lock(lock(shard))
        defer { pthread_mutex_unlock(lock(shard)) }
        return body()
    }

    /// Holds all of them, always taken in the same order.
    func withAll<Failure: Error>(_ body: () throws(Failure) -> Void) throws(Failure) {
        for shard in 0..<ShardLocks.count { pthread_mutex_lock(lock(shard)) }
        defer { for shard in 0..<ShardLocks.count { pthread_mutex_unlock(lock(shard)) } }
        try body()
    }

    private func lock(_ shard: Int) -> UnsafeMutablePointer<pthread_mutex_t> {
        (start + shard * ShardLocks.stride).assumingMemoryBound(to: pthread_mutex_t.self)
    }
}
