import CountersignMemory
import CountersignThreads
import CountersignWire
import Glibc
import Synchronization

/// Grows the table ahead of need on its own thread: it extends the file without holding a shard's lock, and
/// then holds a shard's lock for one bucket at a time.
///
/// The table's size changes under `growth`.
final class ReplayTableGrower: Sendable {
    private struct State {
        var thread: WorkerThreads?
        var isStopping = false
        var waiters: [(rows: Int, continuation: UnsafeContinuation<Refusal?, Never>)] = []
    }

    /// The number of rows split before the pages of the next rows are prepared.
    private static let batchRows = 64

    private let table: ReplayTable
    private let locks: ShardLocks
    private let mostRows: Int
    /// Every insertion into a crowded bucket reads this without the lock.
    private let wanted = Atomic<Int>(0)
    private let state = Monitor(State())
    /// Held while the table grows; an event loop never takes it.
    private let growth = Locked(())

    init(_ table: ReplayTable, locks: ShardLocks, mostRows: Int) {
        (self.table, self.locks, self.mostRows) = (table, locks, mostRows)
    }

    func stop() {
        let thread = state.with { state in
            state.isStopping = true
            return state.thread
        }
        state.wakeOne()
        thread?.join()
    }

    /// Requests growth to that many rows, or to the limit. Returns at once.
    func requestGrowth(toRows: Int) {
        let rows = min(toRows, mostRows)
        guard wanted.load(ordering: .relaxed) < rows else { return }
        state.with { _ = raiseTarget(toRows: rows, in: &$0) }
    }

    /// Waits until the table has that many rows; throws the reason if it cannot.
    func waitForGrowth(toRows rows: Int) async throws(Refusal) {
        try checkLimit(ofRows: rows)
        let failure = await withUnsafeContinuation { continuation in
            let isWaiting = state.with { state in
                guard raiseTarget(toRows: rows, in: &state) else { return false }
                state.waiters.append((rows, continuation))
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

    /// The first call starts the thread; false if the thread cannot be started or is stopping.
    private func raiseTarget(toRows rows: Int, in state: inout State) -> Bool {
        guard !state.isStopping else { return false }
        if state.thread == nil {
            state.thread = try? WorkerThreads(purpose: "to grow the replay table on") { [self] in run() }
        }
        guard state.thread != nil else { return false }
        if wanted.load(ordering: .relaxed) < rows { wanted.store(rows, ordering: .relaxed) }
        self.state.wakeOne()
        return true
    }

    private func run() {
        var reached = 0
        while true {
            let isLast = state.wait { state -> Bool? in
                let hasWork = wanted.load(ordering: .relaxed) > reached || !state.waiters.isEmpty
                return state.isStopping || hasWork ? state.isStopping : nil
            }
            let target = wanted.load(ordering: .relaxed)
            let failure = isLast ? ReplayTableGrower.refusal("the server stops") : grow(to: target)
            reached = target
            let served = state.with { state in
                defer { state.waiters.removeAll { failure != nil || $0.rows <= target } }
                return state.waiters.filter { failure != nil || $0.rows <= target }.map(\.continuation)
            }
            for continuation in served { continuation.resume(returning: failure) }
            if isLast { return }
            if failure != nil {
                // Retrying a full disk more often gains nothing.
                usleep(100_000)
                state.with { _ in
                    if wanted.load(ordering: .relaxed) == target { wanted.store(0, ordering: .relaxed) }
                }
                reached = 0
            }
        }
    }

    /// Returns the reason if the file cannot grow.
    private func grow(to rows: Int) -> Refusal? {
        growth.with { _ in growUnderLock(to: rows) }
    }

    private func growUnderLock(to rows: Int) -> Refusal? {
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
}
