import CountersignHTTP
import CountersignWire
import Glibc

/// Where events go: one JSON line each, written by a thread of its own so that no request waits for a disk or a pipe.
///
/// Bounded: what a sink does not take is dropped beyond 4 MiB, and the number dropped is said in a line of its own. Of
/// callers who have proved nothing a sample is written, and the others are counted (``RefusalSampler``).
final class EventLog: @unchecked Sendable {
    enum Urgency {
        /// With the next batch, within a tenth of a second.
        case soon
        /// Now: somebody may be looking for it already.
        case now
    }

    private static let mostPending = 4 << 20
    private static let batchBytes = 64 << 10
    private static let pauseNanoseconds = 100_000_000

    private let path: String?
    private var descriptor: Int32
    private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let hasWork = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var pending: [UInt8] = []
    private var sampler: RefusalSampler
    private var sampleClock = LogClock()
    private var dropped = 0
    private var isUrgent = false
    private var isStopping = false
    private var mustReopen = false
    private var thread: pthread_t?

    /// Nil where the settings want no log.
    convenience init?(_ target: LogTarget, sampling: RefusalSampler.Settings) throws(Fault) {
        switch target {
        case .off: return nil
        case .standardError: try self.init(path: nil, sampling: sampling)
        case .file(let path): try self.init(path: path, sampling: sampling)
        }
    }

    /// `path` nil: standard error.
    private init(path: String?, sampling: RefusalSampler.Settings) throws(Fault) {
        self.path = path
        sampler = RefusalSampler(sampling)
        descriptor = 2
        pthread_mutex_init(lock, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(hasWork, &attributes)
        if let path { descriptor = try EventLog.open(path) }
        var thread = pthread_t()
        let failure = pthread_create(
            &thread, nil,
            { context in
                guard let context else { return nil }
                Unmanaged<EventLog>.fromOpaque(context).takeRetainedValue().run()
                return nil
            }, Unmanaged.passRetained(self).toOpaque())
        guard failure == 0 else { throw Fault(.failed, "cannot start the log's thread") }
        self.thread = thread
    }

    deinit {
        pthread_mutex_destroy(lock)
        pthread_cond_destroy(hasWork)
        lock.deallocate()
        hasWork.deallocate()
    }

    private static func open(_ path: String) throws(Fault) -> Int32 {
        let descriptor = Glibc.open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw Fault(.failed, "\(path): cannot open the log: \(String(cString: strerror(errno)))")
        }
        return descriptor
    }

    /// Takes one line, without its end.
    func write(_ line: [UInt8], _ urgency: Urgency) {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        guard pending.count + line.count < EventLog.mostPending else {
            dropped += 1
            return
        }
        let wasQuiet = pending.isEmpty
        pending.append(contentsOf: line)
        pending.append(UInt8(ascii: "\n"))
        if urgency == .now { isUrgent = true }
        if wasQuiet || isUrgent || pending.count >= EventLog.batchBytes { pthread_cond_signal(hasWork) }
    }

    /// Whether the line of an event whose caller has proved nothing is written; otherwise it is counted. `now` is in
    /// seconds of a monotonic clock.
    func admits(_ subject: RefusalSampler.Subject, now: Int64) -> Bool {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        if sampler.isOver(now: now) { writeSummary() }
        return sampler.admit(subject, now: now)
    }

    /// Tells what was left out of a window that is over, which the next refusal may be long in doing.
    func closeSample(now: Int64) {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        if sampler.isOver(now: now) { writeSummary() }
    }

    /// A line for each cause and address, and one for all that had no place in the table. Called with the lock held.
    private func writeSummary() {
        let summary = sampler.close()
        guard !summary.isEmpty else { return }
        let time = sampleClock.text()
        for (subject, count) in summary.subjects {
            append(sampled: subject.cause, count, time) { $0.add("address", subject.address.text) }
        }
        for (cause, count) in summary.others {
            append(sampled: cause, count, time) { $0.add("other_addresses", summary.otherAddresses) }
        }
        pthread_cond_signal(hasWork)
    }

    private func append(
        sampled cause: RefusalSampler.Cause, _ count: Int, _ time: String, _ whose: (inout JSONLine) -> Void
    ) {
        var line = JSONLine()
        line.add("log", "sampled")
        line.add("time", time)
        whose(&line)
        line.add("code", cause.name)
        if case .answered(let status) = cause { line.add("status", status) }
        line.add("more", count)
        line.end()
        pending.append(contentsOf: line.bytes)
        pending.append(UInt8(ascii: "\n"))
    }

    /// A line about the server itself.
    func note(_ subject: String, _ message: String) {
        let line: JSONValue = ["log": .string(subject), "message": .string(message)]
        write(Array(line.text.utf8), .now)
    }

    /// Opens the file again, after it was moved away. Source: the custom of SIGHUP.
    func reopen() {
        pthread_mutex_lock(lock)
        mustReopen = true
        pthread_cond_signal(hasWork)
        pthread_mutex_unlock(lock)
    }

    /// Writes what is left and ends the thread.
    func stop() {
        pthread_mutex_lock(lock)
        writeSummary()
        isStopping = true
        pthread_cond_signal(hasWork)
        pthread_mutex_unlock(lock)
        if let thread { pthread_join(thread, nil) }
    }

    private func run() {
        var batch: [UInt8] = []
        while true {
            pthread_mutex_lock(lock)
            while pending.isEmpty, !isStopping, !mustReopen { pthread_cond_wait(hasWork, lock) }
            waitForMore()
            swap(&batch, &pending)
            let lost = dropped
            dropped = 0
            isUrgent = false
            let isLast = isStopping
            if mustReopen { reopenNow() }
            pthread_mutex_unlock(lock)

            if lost > 0 { batch.append(contentsOf: "{\"log\":\"dropped\",\"lines\":\(lost)}\n".utf8) }
            writeAll(batch)
            batch.removeAll(keepingCapacity: true)
            if isLast { return }
        }
    }

    /// Lets a batch gather, unless somebody is in a hurry. Called with the lock held.
    private func waitForMore() {
        var until = timespec()
        clock_gettime(CLOCK_MONOTONIC, &until)
        until.tv_nsec += EventLog.pauseNanoseconds
        if until.tv_nsec >= 1_000_000_000 {
            until.tv_nsec -= 1_000_000_000
            until.tv_sec += 1
        }
        while !isUrgent, !isStopping, !mustReopen, pending.count < EventLog.batchBytes {
            if pthread_cond_timedwait(hasWork, lock, &until) == ETIMEDOUT { return }
        }
    }

    private func reopenNow() {
        mustReopen = false
        guard let path, let fresh = try? EventLog.open(path) else { return }
        close(descriptor)
        descriptor = fresh
    }

    private func writeAll(_ batch: [UInt8]) {
        var written = 0
        while written < batch.count {
            let count = batch.withUnsafeBytes {
                Glibc.write(descriptor, $0.baseAddress.unsafelyUnwrapped + written, batch.count - written)
            }
            if count < 0, errno == EINTR { continue }
            // A sink that is gone or full loses lines; the service does not stop for its log.
            guard count > 0 else { return }
            written += count
        }
    }
}
