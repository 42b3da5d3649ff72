import CountersignAuthority
import CountersignHTTP
import CountersignWire
import Synchronization

/// Verifies all rows in the background, and reports rows that were refused. It uses at most half a percent of
/// one core, however many rows there are.
final class RowWatch: Sendable {
    /// Seconds between two checks, at least.
    private static let leastSeconds: Int64 = 15
    /// Seconds of rest for each second of a check.
    private static let rest: Int64 = 200

    private let rows: RowAuthenticator
    private let store: any Store
    private let log: EventLog?
    private let isRunning = Atomic(false)
    /// When the next check is due, in monotonic seconds.
    private let due = Atomic<Int64>(0)

    /// `store` is a connection of its own.
    init(_ deployment: Deployment, store: any Store, log: EventLog?) {
        rows = deployment.rows
        self.store = store
        self.log = log
    }

    /// Call from the main thread's timer.
    func run() {
        for text in rows.takeNews() { log?.note(subject: "rows", message: text) }
        let now = EventLoop.monotonicSeconds()
        guard due.load(ordering: .relaxed) <= now, !isRunning.exchange(true, ordering: .acquiring) else {
            return
        }
        Task.detached(priority: .background) { [self] in
            do throws(OperationalError) {
                rows.note(try store.verifyRows())
            } catch {
                log?.note(subject: "rows", message: error.message)
            }
            let end = EventLoop.monotonicSeconds()
            due.store(end + max(RowWatch.leastSeconds, (end - now) * RowWatch.rest), ordering: .relaxed)
            isRunning.store(false, ordering: .releasing)
        }
    }
}
