import CountersignWire
import Glibc

/// A lock for each sixty-fourth of the table, so that loops seldom meet, and one for the header's rarer fields. They are
/// POSIX mutexes in memory that two processes may share, and robust: where a process dies with one of them, the next
/// owner is told, and repairs what the lock guards. Safe to share: the memory is never replaced, and holds only locks.
final class ShardLocks: @unchecked Sendable {
    static let count = 64
    /// Guards the header's clock periods and refused intervals.
    private static let headerIndex = count
    /// A cache line, so that neighbours do not slow each other down.
    private static let stride = 64
    private static let bytes = (count + 1) * stride

    /// The memory's descriptor, for a process that is to share the locks.
    let memory: FileDescriptor
    private let start: UnsafeMutableRawPointer

    /// New locks, all of them open.
    init() throws(Fault) {
        memory = try FileDescriptor(memory: "countersign-replay-locks", bytes: ShardLocks.bytes)
        start = try ShardLocks.map(memory)
        var attributes = pthread_mutexattr_t()
        pthread_mutexattr_init(&attributes)
        defer { pthread_mutexattr_destroy(&attributes) }
        pthread_mutexattr_setpshared(&attributes, Int32(PTHREAD_PROCESS_SHARED))
        pthread_mutexattr_setrobust(&attributes, Int32(PTHREAD_MUTEX_ROBUST))
        for index in 0...ShardLocks.count { pthread_mutex_init(mutex(index), &attributes) }
    }

    /// The locks of another process.
    init(sharing memory: FileDescriptor) throws(Fault) {
        self.memory = memory
        start = try ShardLocks.map(memory)
    }

    // Not destroyed: another process may use them.
    deinit { munmap(start, ShardLocks.bytes) }

    /// Holds one shard's lock. `repair` is called first where the last owner died with it.
    @inline(__always)
    func with<Result>(_ shard: Int, repair: (Int) -> Void, _ body: () -> Result) -> Result {
        let mutex = mutex(shard)
        let code = pthread_mutex_lock(mutex)
        if code != 0 { takeOver(mutex, code) { repair(shard) } }
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
            if code != 0 { takeOver(mutex(shard), code) { repair(shard) } }
        }
        defer { for shard in 0..<ShardLocks.count { pthread_mutex_unlock(mutex(shard)) } }
        body()
    }

    @inline(never)
    private func takeOver(_ mutex: UnsafeMutablePointer<pthread_mutex_t>, _ code: Int32, _ repair: () -> Void) {
        // Anything else means that the lock's memory is damaged. To go on without it could admit a replay.
        guard code == EOWNERDEAD else {
            fatalError("a lock of the replay table is damaged: \(code)")  // lint: no input reaches it
        }
        repair()
        pthread_mutex_consistent(mutex)
    }

    private func mutex(_ index: Int) -> UnsafeMutablePointer<pthread_mutex_t> {
        (start + index * ShardLocks.stride).assumingMemoryBound(to: pthread_mutex_t.self)
    }

    private static func map(_ memory: FileDescriptor) throws(Fault) -> UnsafeMutableRawPointer {
        var status = stat()
        guard fstat(memory.number, &status) == 0, status.st_size >= bytes else {
            throw Fault(.failed, "the memory of the replay table's locks is too small")
        }
        guard let start = mmap(nil, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.number, 0), start != MAP_FAILED
        else { throw Fault.system("map the replay table's locks", errno) }
        return start
    }
}
