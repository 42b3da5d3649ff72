import Glibc

/// One lock for each of the 64 shards of a table, so that event loops seldom contend, and one for fields that
/// belong to no shard. They are POSIX mutexes in memory that two processes may share, and robust: if a
/// process dies while holding one, the next owner is notified and repairs what the lock guards. Safe to
/// share: the memory is never replaced, and holds only locks.
package final class ShardLocks: @unchecked Sendable {
    package static let count = 64
    /// The lock for fields that belong to no shard.
    private static let headerIndex = count
    /// One cache line for each lock, to avoid false sharing.
    private static let stride = 64
    /// The memory that the locks take, in bytes.
    package static let bytes = (count + 1) * stride

    let memory: SharedMemory
    private let start: UnsafeMutableRawPointer

    /// Creates unlocked locks at `offset`, a multiple of eight, in memory that no other process uses yet.
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

    /// Uses the locks that another process created there. They are never destroyed, because either process
    /// may outlive the other.
    package init(sharing memory: SharedMemory, at offset: Int = 0) {
        self.memory = memory
        start = memory.start + offset
    }

    /// Runs the body while holding one shard's lock. Calls `repair` first if the last owner died while
    /// holding it.
    @inline(__always)
    package func withLock<Result>(of shard: Int, repair: (Int) -> Void, body: () -> Result) -> Result {
        let mutex = mutex(shard)
        let code = pthread_mutex_lock(mutex)
        if code != 0 { takeOver(mutex, after: code) { repair(shard) } }
        defer { pthread_mutex_unlock(mutex) }
        return body()
    }

    /// Runs `body` while holding the lock of the header's rarely used fields.
    func withHeader<Result>(_ body: () -> Result) -> Result {
        withLock(of: ShardLocks.headerIndex, repair: { _ in }, body: body)
    }

    /// Runs `body` while holding every shard's lock, taken in a fixed order.
    func withAllLocks(repair: (Int) -> Void, body: () -> Void) {
        for shard in 0..<ShardLocks.count {
            let code = pthread_mutex_lock(mutex(shard))
            if code != 0 { takeOver(mutex(shard), after: code) { repair(shard) } }
        }
        defer { for shard in 0..<ShardLocks.count { pthread_mutex_unlock(mutex(shard)) } }
        body()
    }

    @inline(never)
    private func takeOver(
        _ mutex: UnsafeMutablePointer<pthread_mutex_t>, after code: Int32, repair: () -> Void
    ) {
        // Any other code means that the lock's memory is damaged. Continuing without the lock could admit a
        // replay.
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
