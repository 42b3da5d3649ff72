import CountersignAuthority
import CountersignHTTP
import CountersignMemory
import CountersignWire
import Synchronization

/// Verifies all rows before a server listens, unless there are too many, then in the background, and reports
/// rows that were refused. In the background it uses at most half a percent of one core, however many rows
/// there are.
final class RowWatch: Sendable {
    /// Rows that callers can wait for: about a second of one core.
    private static let mostBeforeStart: Int64 = 100_000

    private let deployment: Deployment
    private var rows: RowAuthenticator { deployment.rows }
    private let store: any Store
    private let log: EventLog?
    private let isRunning = Atomic(false)
    private let schedule = Locked(RowCheckSchedule())

    /// `store` is a connection of its own.
    init(_ deployment: Deployment, store: any Store, log: EventLog?) {
        self.deployment = deployment
        self.store = store
        self.log = log
    }

    /// Verifies all rows, unless there are too many. Call it before anything accepts a session: a row that
    /// was put back to an earlier state is authentic, and only the sums tell.
    func verifyBeforeStart() throws(OperationalError) {
        guard try store.countRows() <= RowWatch.mostBeforeStart else { return }
        try verify(mark: store.changeMark(), at: EventLoop.monotonicSeconds())
    }

    /// Call from the main thread's timer.
    func run() {
        for text in rows.takeNews() { log?.note(subject: "rows", message: text) }
        let now = EventLoop.monotonicSeconds()
        guard schedule.with({ $0.isDue(at: now) }), !isRunning.exchange(true, ordering: .acquiring) else {
            return
        }
        Task.detached(priority: .background) { [self] in
            check(at: now)
            isRunning.store(false, ordering: .releasing)
        }
    }

    private func check(at now: Int64) {
        do throws(OperationalError) {
            // Before the rows: what changes in between is verified once more.
            let mark = try store.changeMark()
            guard schedule.with({ $0.mustVerify(mark: mark, at: now) }) else {
                return schedule.with { $0.didSkip(at: now) }
            }
            try verify(mark: mark, at: now)
        } catch {
            schedule.with { $0.didFail(from: now, to: EventLoop.monotonicSeconds()) }
            log?.note(subject: "rows", message: error.message)
        }
    }

    private func verify(mark: Int64, at now: Int64) throws(OperationalError) {
        // The rows of an earlier copy add up among themselves.
        try deployment.followStore()
        let clock = ContinuousClock()
        let began = clock.now
        rows.note(try store.verifyRows())
        let taken = began.duration(to: clock.now)
        schedule.with {
            $0.didVerify(mark: mark, from: now, to: EventLoop.monotonicSeconds(), taking: taken)
        }
    }
}

/// When all rows are verified: after each change of the store, except during a rest; and now and then without
/// one, because a program that writes to the file without SQLite leaves no sign of a change. Times are in
/// monotonic seconds.
struct RowCheckSchedule: Sendable {
    /// Between two looks for changes, at least.
    private static let leastSeconds: Int64 = 15
    /// Seconds of rest for each second of a check.
    private static let rest: Int64 = 200
    /// Between two checks of a store that does not change.
    private static let mostSeconds: Int64 = 600

    private var due: Int64 = 0
    private var verified: (mark: Int64, at: Int64)?

    func isDue(at now: Int64) -> Bool { due <= now }

    /// Whether the store may have changed since the last check, or that check was long ago. `mark` is
    /// ``RowAuthenticationStore/changeMark()``.
    func mustVerify(mark: Int64, at now: Int64) -> Bool {
        guard let verified else { return true }
        return verified.mark != mark || now - verified.at >= RowCheckSchedule.mostSeconds
    }

    mutating func didSkip(at now: Int64) { due = now + RowCheckSchedule.leastSeconds }

    /// `duration` is the exact one, if it is known: a short check can begin in one second and end in the
    /// next.
    mutating func didVerify(mark: Int64, from begin: Int64, to end: Int64, taking duration: Duration? = nil) {
        verified = (mark, end)
        guard let duration else { return rest(from: begin, to: end) }
        let (seconds, attoseconds) = duration.components
        let milliseconds = seconds * 1_000 + attoseconds / 1_000_000_000_000_000
        due = end + max(RowCheckSchedule.leastSeconds, milliseconds * RowCheckSchedule.rest / 1_000)
    }

    /// The rows are not known to be right: they are verified after the rest.
    mutating func didFail(from begin: Int64, to end: Int64) {
        verified = nil
        rest(from: begin, to: end)
    }

    private mutating func rest(from begin: Int64, to end: Int64) {
        due = end + max(RowCheckSchedule.leastSeconds, (end - begin) * RowCheckSchedule.rest)
    }
}
