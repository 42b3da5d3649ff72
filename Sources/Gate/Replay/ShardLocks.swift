import Glibc

/// A lock for each sixty-fourth of a table, so that loops seldom meet, and one for what belongs to no shard. They are
/// POSIX mutexes in memory that two processes may share, and robust: where a process dies with one of them, the next
/// owner is told, and repairs what the lock guards. Safe to share: the memory is never replaced, and holds only locks.
package final class ShardLocks: @unchecked Sendable {
    package static let count = 64
    /// Guards what belongs to no shard.
    private static let headerIndex = count
    /// A cache line, so that neighbours do not slow each other down.
    private static let stride = 64
    /// Bytes of memory that they take.
    package static let bytes = (count + 1) * stride

    let memory: SharedMemory
    private let start: UnsafeMutableRawPointer

    /// New locks, all of them open, at a multiple of eight bytes in memory that no other process uses yet.
    package init(makingIn memory: SharedMemory, at offset: Int = 0) {
        self.memory = memory
        start = memory.start + offset
        var attributes = pthread_mutexattr_t()
        pthread_mutexattr_init(&attributes)
        defer { pthread_mutexattr_destroy(&attributes) }
        pthread_mutexattr_setpshared(&attributes, Int32(PTHREAD_PROCESS_SHARED))
        pthread_mutexattr_setrobust(&attributes, Int32(PTHREAD_MUTEX_ROBUST))
        for index in 0...ShardLocks.count { pthread_mutex_init(mutex(index), &attributes) }
    }

    /// The locks that another process has made there. They are never destroyed: either process may use them for longer.
    package init(sharing memory: SharedMemory, at offset: Int = 0) {
        self.memory = memory
        start = memory.start + offset
    }

    /// Holds one shard's lock. `repair` is called first where the last owner died with it.
    @inline(__always)
    package func with<Result>(_ shard: Int, repair: (Int) -> Void, _ body: () -> Result) -> Result {
        let mutex = mutex(shard)
        let code = pthread_mutex_lock(mutex)
        if code != 0 { takeOver(mutex, after: code) { repair(shard) } }
        defer { pthread_mutex_unlock(mutex) }
        return body()
    }

    /// Holds the lock of the header's rarer fields.
    func withHeader<Result>(_ body: () -> Result) -> Result {
        with(ShardLocks.headerIndex, repair: { _ in }, body)
    }

    /// Holds every shard's lock, always taken in the same order.
    func withAll(repair: (Int) -> Void, _ body: () -> Void) {
        for shard in 0..<ShardLocks.count {
            let code = pthread_mutex_lock(mutex(shard))
            if code != 0 { takeOver(mutex(shard), after: code) { repair(shard) } }
        }
        defer { for shard in 0..<ShardLocks.count { pthread_mutex_unlock(mutex(shard)) } }
        body()
    }

    @inline(never)
    private func takeOver(_ mutex: UnsafeMutablePointer<pthread_mutex_t>, after code: Int32, repair: () -> Void) {
        // Anything else means that the lock's memory is damaged. To go on without it could admit a replay.
        guard code == EOWNERDEAD else {
            fatalError("a shared lock is damaged: \(code)")  // lint: no input reaches it
        }
        repair()
        pthread_mutex_consistent(mutex)
    }

    private func mutex(_ index: Int) -> UnsafeMutablePointer<pthread_mutex_t> {
        (start + index * ShardLocks.stride).assumingMemoryBound(to: pthread_mutex_t.self)
    }
}
