import CountersignWire
import Glibc
import Synchronization

/// Grows the table ahead of need on its own thread: it extends the file without holding a shard's lock, and
/// then holds a shard's lock for one bucket at a time.
///
/// Safe to share: `waiters`, `thread` and `isStopping` are accessed under `mutex`, and the table's size
/// changes under `growthLock`.
final class ReplayTableGrower: @unchecked Sendable {
    /// The number of rows split before the pages of the next rows are prepared.
    private static let batchRows = 64

    private let table: ReplayTable
    private let locks: ShardLocks
    private let mostRows: Int
    /// Every insertion into a crowded bucket reads this without the lock.
    private let wanted = Atomic<Int>(0)
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let wakes = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    /// Held while the table grows; an event loop never takes it.
    private let growthLock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private var thread: pthread_t?
    private var isStopping = false
    private var waiters: [(rows: Int, continuation: UnsafeContinuation<Refusal?, Never>)] = []

    init(_ table: ReplayTable, locks: ShardLocks, mostRows: Int) {
        (self.table, self.locks, self.mostRows) = (table, locks, mostRows)
        pthread_mutex_init(mutex, nil)
        pthread_mutex_init(growthLock, nil)
        pthread_cond_init(wakes, nil)
    }

    deinit {
        pthread_mutex_destroy(mutex)
        pthread_mutex_destroy(growthLock)
        pthread_cond_destroy(wakes)
        mutex.deallocate()
        growthLock.deallocate()
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

    /// Requests growth to that many rows, or to the limit. Returns at once.
    func requestGrowth(toRows: Int) {
        let rows = min(toRows, mostRows)
        guard wanted.load(ordering: .relaxed) < rows else { return }
        hold { _ = raiseTarget(toRows: rows) }
    }

    /// Waits until the table has that many rows; throws the reason if it cannot.
    func waitForGrowth(toRows rows: Int) async throws(Refusal) {
        try checkLimit(ofRows: rows)
        let failure = await withUnsafeContinuation { continuation in
            let isWaiting = hold { () -> Bool in
                guard raiseTarget(toRows: rows) else { return false }
                waiters.append((rows, continuation))
                return true
            }
            if !isWaiting {
                continuation.resume(returning: ReplayTableGrower.refusal("there is no thread for it"))
            }
        }
        if let failure { throw failure }
    }

    /// Grows the table on the calling thread, which may wait for a disk: for tools and tests, never on a
    /// loop.
    func growNow(toRows rows: Int) throws(Refusal) {
        try checkLimit(ofRows: rows)
        if let failure = grow(to: rows) { throw failure }
    }

    private func checkLimit(ofRows rows: Int) throws(Refusal) {
        guard rows > mostRows else { return }
        let entries = mostRows * ReplayTable.rowEntries
        throw Refusal(.unavailable, detail: "the replay table is full at \(entries) entries", retryAfter: 5)
    }

    private static func refusal(_ reason: String) -> Refusal {
        Refusal(OperationalError(.failed, message: reason), in: "the replay table cannot grow")
    }

    /// The caller holds `mutex`. The first call starts the thread; false if the thread cannot be started or
    /// is stopping.
    private func raiseTarget(toRows rows: Int) -> Bool {
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
                Unmanaged<ReplayTableGrower>.fromOpaque(context).takeRetainedValue().run()
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
            let failure = isLast ? ReplayTableGrower.refusal("the server stops") : grow(to: target)
            reached = target
            let served = hold { () -> [UnsafeContinuation<Refusal?, Never>] in
                defer { waiters.removeAll { failure != nil || $0.rows <= target } }
                return waiters.filter { failure != nil || $0.rows <= target }.map(\.continuation)
            }
            for continuation in served { continuation.resume(returning: failure) }
            if isLast { return }
            if failure != nil {
                // Retrying a full disk more often gains nothing.
                usleep(100_000)
                hold { if wanted.load(ordering: .relaxed) == target { wanted.store(0, ordering: .relaxed) } }
                reached = 0
            }
        }
    }

    /// Returns the reason if the file cannot grow.
    private func grow(to rows: Int) -> Refusal? {
        pthread_mutex_lock(growthLock)
        defer { pthread_mutex_unlock(growthLock) }
        var row = table.leastRows
        while row < rows {
            let end = min(row + ReplayTableGrower.batchRows, rows)
            do { try reserve(end) } catch { return Refusal(error, in: "the replay table cannot grow") }
            for next in row..<end {
                for shard in 0..<ShardLocks.count {
                    locks.withLock(of: shard, repair: table.removeMoved) {
                        if table.header.rows(of: shard) == next { table.split(shard) }
                    }
                }
            }
            row = end
        }
        return nil
    }

    /// Ensures that the file has the bytes of the rows below `end`, and more if it must grow; prepares their
    /// pages.
    private func reserve(_ end: Int) throws(OperationalError) {
        let needed = ReplayTable.fileBytes(rows: end)
        if needed > table.file.size {
            let ahead = min(max(table.file.size / 4, 1 << 20), 1 << 26)
            let most = ReplayTable.fileBytes(rows: mostRows)
            do {
                try table.file.extend(to: min(needed + ahead, max(most, needed)))
            } catch {
                try table.file.extend(to: needed)
            }
        }
        let first = max(end - ReplayTableGrower.batchRows, 1)
        table.file.populate(ReplayTable.fileBytes(rows: first)..<needed)
        let source = ReplayTable.source(of: first)
        table.file.populate(
            ReplayTable.fileBytes(
                rows: source)..<ReplayTable.fileBytes(rows: source + ReplayTableGrower.batchRows))
    }

    private func hold<Result>(_ body: () -> Result) -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return body()
    }
}
