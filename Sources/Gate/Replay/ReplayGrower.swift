import CountersignWire
import Glibc
import Synchronization

/// Grows the table on a thread of its own, ahead of need: it reserves bytes of the file while it holds no
/// lock, and then holds a shard's lock for one bucket at a time.
///
/// Safe to share: `waiters`, `thread` and `isStopping` are touched under `mutex`, the table's size under `growing`.
final class ReplayGrower: @unchecked Sendable {
    /// Why a table did not grow.
    enum Failure: Error, Sendable {
        /// It has as many entries as it may.
        case limit(Int)
        case fault(String)
    }

    /// Rows that are split before the locks rest and pages are prepared for more.
    private static let bite = 64

    private let table: ReplayTable
    private let locks: ShardLocks
    private let mostRows: Int
    /// Compared without the lock by every insertion into a crowded bucket.
    private let wanted = Atomic<Int>(0)
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let wakes = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    /// Held while the table grows; never by a loop.
    private let growing = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private var thread: pthread_t?
    private var isStopping = false
    private var waiters: [(rows: Int, continuation: UnsafeContinuation<Failure?, Never>)] = []

    init(_ table: ReplayTable, locks: ShardLocks, mostRows: Int) {
        (self.table, self.locks, self.mostRows) = (table, locks, mostRows)
        pthread_mutex_init(mutex, nil)
        pthread_mutex_init(growing, nil)
        pthread_cond_init(wakes, nil)
    }

    deinit {
        pthread_mutex_destroy(mutex)
        pthread_mutex_destroy(growing)
        pthread_cond_destroy(wakes)
        mutex.deallocate()
        growing.deallocate()
        wakes.deallocate()
    }

    func stop() {
        pthread_mutex_lock(mutex)
        isStopping = true
        pthread_cond_signal(wakes)
        let thread = thread
        pthread_mutex_unlock(mutex)
        if let thread { pthread_join(thread, nil) }
    }

    /// Has the table grow to so many rows, or as many as it may. Returns at once.
    func want(rows: Int) {
        let rows = min(rows, mostRows)
        guard wanted.load(ordering: .relaxed) < rows else { return }
        hold { _ = raise(to: rows) }
    }

    /// Waits until the table has so many rows; answers why it has not.
    nonisolated(nonsending) func grown(to rows: Int) async -> Failure? {
        guard rows <= mostRows else { return .limit(mostRows * ReplayTable.rowEntries) }
        return await withUnsafeContinuation { continuation in
            let isWaiting = hold { () -> Bool in
                guard raise(to: rows) else { return false }
                waiters.append((rows, continuation))
                return true
            }
            if !isWaiting { continuation.resume(returning: .fault("there is no thread for it")) }
        }
    }

    /// Grows the table on the calling thread, which may wait for a disk: for tools and tests, never on a loop.
    func growNow(to rows: Int) -> Failure? {
        guard rows <= mostRows else { return .limit(mostRows * ReplayTable.rowEntries) }
        return grow(to: rows)
    }

    /// With `mutex` held. The first call starts the thread; false where it cannot be started or is stopping.
    private func raise(to rows: Int) -> Bool {
        guard !isStopping else { return false }
        if thread == nil { thread = start() }
        guard thread != nil else { return false }
        if wanted.load(ordering: .relaxed) < rows { wanted.store(rows, ordering: .relaxed) }
        pthread_cond_signal(wakes)
        return true
    }

    private func start() -> pthread_t? {
        var thread = pthread_t()
        let failure = pthread_create(
            &thread, nil,
            { context in
                guard let context else { return nil }
                Unmanaged<ReplayGrower>.fromOpaque(context).takeRetainedValue().run()
                return nil
            }, Unmanaged.passRetained(self).toOpaque())
        if failure == 0 { return thread }
        Unmanaged.passUnretained(self).release()
        return nil
    }

    private func run() {
        var reached = 0
        while true {
            pthread_mutex_lock(mutex)
            while !isStopping, wanted.load(ordering: .relaxed) <= reached, waiters.isEmpty {
                pthread_cond_wait(wakes, mutex)
            }
            let isLast = isStopping
            pthread_mutex_unlock(mutex)
            let target = wanted.load(ordering: .relaxed)
            let failure = isLast ? .fault("the server stops") : grow(to: target)
            reached = target
            let served = hold { () -> [UnsafeContinuation<Failure?, Never>] in
                defer { waiters.removeAll { failure != nil || $0.rows <= target } }
                return waiters.filter { failure != nil || $0.rows <= target }.map(\.continuation)
            }
            for continuation in served { continuation.resume(returning: failure) }
            if isLast { return }
            if failure != nil {
                // Nothing is gained by asking a full disk more often.
                usleep(100_000)
                hold { if wanted.load(ordering: .relaxed) == target { wanted.store(0, ordering: .relaxed) } }
                reached = 0
            }
        }
    }

    private func grow(to rows: Int) -> Failure? {
        pthread_mutex_lock(growing)
        defer { pthread_mutex_unlock(growing) }
        var row = table.leastRows
        while row < rows {
            let end = min(row + ReplayGrower.bite, rows)
            do throws(Fault) { try reserve(end) } catch { return .fault(error.message) }
            for next in row..<end {
                for shard in 0..<ShardLocks.count {
                    locks.with(shard, repair: table.removeMoved) {
                        if table.header.rows(of: shard) == next { table.split(shard) }
                    }
                }
            }
            row = end
        }
        return nil
    }

    /// Sees to the bytes of rows below `end`, some more where the file has to grow, and has their pages ready.
    private func reserve(_ end: Int) throws(Fault) {
        let needed = ReplayTable.fileBytes(rows: end)
        if needed > table.mapping.size {
            let ahead = min(max(table.mapping.size / 4, 1 << 20), 1 << 26)
            let most = ReplayTable.fileBytes(rows: mostRows)
            do throws(Fault) {
                try table.mapping.extend(to: min(needed + ahead, max(most, needed)))
            } catch {
                try table.mapping.extend(to: needed)
            }
        }
        let first = max(end - ReplayGrower.bite, 1)
        table.mapping.populate(ReplayTable.fileBytes(rows: first)..<needed)
        let source = ReplayTable.source(of: first)
        table.mapping.populate(
            ReplayTable.fileBytes(rows: source)..<ReplayTable.fileBytes(rows: source + ReplayGrower.bite))
    }

    private func hold<Result>(_ body: () -> Result) -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return body()
    }
}
