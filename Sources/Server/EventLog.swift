import CountersignHTTP
import CountersignWire
import Glibc

/// Writes events, one JSON line each, on a thread of its own, so that no request waits for a disk or a pipe.
///
/// Bounded: it buffers at most 4 MiB for a slow sink, drops further lines, and logs the number of dropped
/// lines. Of callers that have proved nothing it writes a sample and counts the others (``RefusalSampler``).
final class EventLog: @unchecked Sendable {
    enum Urgency {
        /// With the next batch, within a tenth of a second.
        case soon
        /// At once: an operator may already be looking for it.
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

    /// Nil if the settings turn the log off.
    convenience init?(_ target: LogTarget, sampling: RefusalSampler.Settings) throws(OperationalError) {
        switch target {
        case .off: return nil
        case .standardError: try self.init(path: nil, sampling: sampling)
        case .file(let path): try self.init(path: path, sampling: sampling)
        }
    }

    /// `path` nil: standard error.
    private init(path: String?, sampling: RefusalSampler.Settings) throws(OperationalError) {
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
        guard failure == 0 else { throw OperationalError(.failed, message: "cannot start the log's thread") }
        self.thread = thread
    }

    deinit {
        pthread_mutex_destroy(lock)
        pthread_cond_destroy(hasWork)
        lock.deallocate()
        hasWork.deallocate()
    }

    private static func open(_ path: String) throws(OperationalError) -> Int32 {
        let descriptor = Glibc.open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw OperationalError(
                .failed, message: "\(path): cannot open the log: \(String(cString: strerror(errno)))")
        }
        return descriptor
    }

    /// Takes one line, without its line end.
    func write(_ line: [UInt8], urgency: Urgency) {
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

    /// Whether to write the line of an event whose caller has proved nothing; otherwise the sampler counts
    /// it. `now` is in seconds of a monotonic clock.
    func admits(_ subject: RefusalSampler.Subject, now: Int64) -> Bool {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        if sampler.isOver(now: now) { writeSummary() }
        return sampler.admit(subject, now: now)
    }

    /// Reports what a window that is over left out, without waiting for the next refusal.
    func closeSample(now: Int64) {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        if sampler.isOver(now: now) { writeSummary() }
    }

    /// Writes a line for each cause and address, and one for all that had no place in the table. Called with
    /// the lock held.
    private func writeSummary() {
        let summary = sampler.close()
        guard !summary.isEmpty else { return }
        let time = sampleClock.text()
        for (subject, count) in summary.subjects {
            append(sampled: subject.cause, count: count, time: time) {
                $0.add("address", value: subject.address.text)
            }
        }
        for (cause, count) in summary.others {
            append(sampled: cause, count: count, time: time) {
                $0.add("other_addresses", value: summary.otherAddresses)
            }
        }
        pthread_cond_signal(hasWork)
    }

    private func append(
        sampled cause: RefusalSampler.Cause, count: Int, time: String, subject whose: (inout JSONLine) -> Void
    ) {
        var line = JSONLine()
        line.add("log", value: "sampled")
        line.add("time", value: time)
        whose(&line)
        line.add("code", value: cause.name)
        if case .answered(let status) = cause { line.add("status", value: status) }
        line.add("more", value: count)
        line.end()
        pending.append(contentsOf: line.bytes)
        pending.append(UInt8(ascii: "\n"))
    }

    /// A line about the server itself.
    func note(subject: String, message: String) {
        let line: JSONValue = ["log": .string(subject), "message": .string(message)]
        write(Array(line.text.utf8), urgency: .now)
    }

    /// Opens the file again after it was renamed, as daemons do on SIGHUP.
    func reopen() {
        pthread_mutex_lock(lock)
        mustReopen = true
        pthread_cond_signal(hasWork)
        pthread_mutex_unlock(lock)
    }

    /// Writes the pending lines and ends the thread.
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

    /// Lets a batch gather, unless a line is urgent. Called with the lock held.
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
            // A sink that is gone or full loses lines; the service does not stop because of its log.
            guard count > 0 else { return }
            written += count
        }
    }
}
