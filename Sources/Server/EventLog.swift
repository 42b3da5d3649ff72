import CountersignGate
import CountersignHTTP
import CountersignThreads
import CountersignWire
import Glibc

/// Writes events, one JSON line each, on a thread of its own, so that no request waits for a disk or a pipe.
///
/// Bounded: it buffers at most 4 MiB for a slow sink, drops further lines, and logs the number of dropped
/// lines. Of callers that have proved nothing it writes a sample and counts the others (``RefusalSampler``).
final class EventLog: Sendable {
    enum Urgency {
        /// With the next batch, within a tenth of a second.
        case soon
        /// At once: an operator may already be looking for it.
        case now
    }

    private static let mostPending = 4 << 20
    fileprivate static let batchBytes = 64 << 10

    private let queue: Monitor<EventLogQueue>
    private let thread: WorkerThreads

    /// Nil if the settings turn the log off.
    convenience init?(_ target: LogTarget, sampling: RefusalSampler.Settings) throws(OperationalError) {
        guard let sink = try Sink(target) else { return nil }
        try self.init(sink, sampling: sampling)
    }

    private init(_ sink: Sink, sampling: RefusalSampler.Settings) throws(OperationalError) {
        let queue = Monitor(EventLogQueue(sampling))
        self.queue = queue
        thread = try WorkerThreads(purpose: "to write the log on") {
            var writer = EventLogWriter(queue, sink: sink)
            writer.run()
        }
    }

    /// The sampler that has admitted a line.
    enum Sampler {
        case verified, unproven
        /// A line that is not sampled.
        case none
    }

    /// Takes one line, without its line end, and charges its length to the sampler that has admitted it.
    func write(_ line: [UInt8], urgency: Urgency, admittedBy sampler: Sampler = .none) {
        queue.with { queue in
            if line.count > RefusalSampler.usualBytes { queue.charge(line.count, to: sampler) }
            guard queue.pending.count + line.count < EventLog.mostPending else {
                queue.dropped += 1
                return
            }
            let wasQuiet = queue.pending.isEmpty
            queue.append(line)
            if urgency == .now { queue.isUrgent = true }
            if wasQuiet || queue.isUrgent || queue.pending.count >= EventLog.batchBytes {
                self.queue.wakeOne()
            }
        }
    }

    /// Whether to write the line of an event whose caller has proved nothing; otherwise the sampler counts
    /// it. `now` is in seconds of a monotonic clock.
    func admits(_ subject: RefusalSampler.Subject, now: Int64) -> Bool {
        queue.with { queue in
            if queue.sampler.isOver(now: now) { writeSummary(to: &queue) }
            return queue.sampler.admit(subject, now: now)
        }
    }

    /// Admits the event of a caller that has proved something. Up to a bound for each window, each such event
    /// has its own line.
    func admits(_ subject: RefusalSampler.Subject, of proof: CallerProof, now: Int64) -> Bool {
        queue.with { queue in
            if queue.verified.isOver(now: now) { writeSummary(to: &queue) }
            return queue.verified.admit(subject, of: proof, now: now)
        }
    }

    /// Reports what a window that is over left out, without waiting for the next refusal.
    func closeSample(now: Int64) {
        queue.with { queue in
            if queue.sampler.isOver(now: now) || queue.verified.isOver(now: now) { writeSummary(to: &queue) }
        }
    }

    private func writeSummary(to queue: inout EventLogQueue) {
        if queue.appendSummary() { self.queue.wakeOne() }
    }

    /// A line about the server itself.
    func note(subject: String, message: String) {
        let line: JSONValue = ["log": .string(subject), "message": .string(message)]
        write(Array(line.text.utf8), urgency: .now)
    }

    /// An opened place to write to.
    final class Sink: Sendable {
        /// Nil for standard error, which is not the writer's to close.
        private let file: FileDescriptor?

        fileprivate var descriptor: Int32 { file?.number ?? STDERR_FILENO }

        /// Nil where the log is off. Throws if a file cannot be opened.
        init?(_ target: LogTarget) throws(OperationalError) {
            switch target {
            case .off: return nil
            case .standardError: file = nil
            case .file(let path): file = try EventLogWriter.open(path)
            }
        }
    }

    /// Writes to `sink` from the next batch on, as daemons do on SIGHUP after their file was renamed, and
    /// samples by other settings. The summary of the lines that were left out so far is written.
    func continueTo(_ sink: Sink, sampling: RefusalSampler.Settings) {
        queue.with { queue in
            if sampling != queue.sampler.settings {
                _ = queue.appendSummary()
                queue.sampler = RefusalSampler(sampling)
                queue.verified = VerifiedSampler(sampling)
            }
            queue.nextSink = sink
        }
        queue.wakeOne()
    }

    /// Writes the pending lines and ends the thread.
    func stop() {
        queue.with { queue in
            _ = queue.appendSummary()
            queue.isStopping = true
        }
        queue.wakeOne()
        thread.join()
    }
}

/// The lines that wait for the log's thread, and what the thread has to do besides.
private struct EventLogQueue {
    fileprivate(set) var pending: [UInt8] = []
    var sampler: RefusalSampler
    var verified: VerifiedSampler
    private var sampleClock = LogClock()
    var dropped = 0
    var isUrgent = false
    var isStopping = false
    var nextSink: EventLog.Sink?

    init(_ settings: RefusalSampler.Settings) {
        sampler = RefusalSampler(settings)
        verified = VerifiedSampler(settings)
    }

    mutating func charge(_ bytes: Int, to kind: EventLog.Sampler) {
        switch kind {
        case .verified: verified.charge(bytes: bytes)
        case .unproven: sampler.charge(bytes: bytes)
        case .none: break
        }
    }

    mutating func append(_ line: [UInt8]) {
        pending.append(contentsOf: line)
        pending.append(UInt8(ascii: "\n"))
    }

    /// Appends a line for each cause and address, and one for all that had no place in the table. False if
    /// there is none.
    mutating func appendSummary() -> Bool {
        let isWritten = append(sampler.close(), ofVerified: false)
        return append(verified.close(), ofVerified: true) || isWritten
    }

    private mutating func append(_ summary: RefusalSampler.Summary, ofVerified isVerified: Bool) -> Bool {
        guard !summary.isEmpty else { return false }
        let time = sampleClock.text()
        for (subject, count) in summary.subjects {
            append(sampled: subject.cause, count: count, time: time) {
                $0.add("address", value: subject.address.text)
                if isVerified { $0.add("verified", value: "yes") }
            }
        }
        for (cause, count) in summary.others {
            append(sampled: cause, count: count, time: time) {
                $0.add("other_addresses", value: summary.otherAddresses)
                if isVerified { $0.add("verified", value: "yes") }
            }
        }
        return true
    }

    private mutating func append(
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
        append(line.bytes)
    }
}

/// The body of the log's thread.
private struct EventLogWriter {
    private static let pauseMilliseconds = 100

    private let queue: Monitor<EventLogQueue>
    private var sink: EventLog.Sink

    init(_ queue: Monitor<EventLogQueue>, sink: EventLog.Sink) {
        self.queue = queue
        self.sink = sink
    }

    /// Does not wait: a named pipe without a reader is an error.
    static func open(_ path: String) throws(OperationalError) -> FileDescriptor {
        let descriptor = Glibc.open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0o600)
        guard descriptor >= 0 else {
            throw OperationalError(
                .failed, message: "\(path): cannot open the log: \(String(cString: strerror(errno)))")
        }
        // The writer's thread waits for a slow disk or reader.
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK)
        return FileDescriptor(owning: descriptor)
    }

    mutating func run() {
        var batch: [UInt8] = []
        while true {
            queue.wait { $0.pending.isEmpty && !$0.isStopping && $0.nextSink == nil ? nil : () }
            // Lets a batch gather, unless a line is urgent.
            queue.wait(milliseconds: EventLogWriter.pauseMilliseconds) { queue -> Void? in
                let isDue = queue.isUrgent || queue.isStopping || queue.nextSink != nil
                return isDue || queue.pending.count >= EventLog.batchBytes ? () : nil
            }
            let (lost, isLast, next) = queue.with { queue in
                swap(&batch, &queue.pending)
                defer { (queue.dropped, queue.isUrgent, queue.nextSink) = (0, false, nil) }
                return (queue.dropped, queue.isStopping, queue.nextSink)
            }
            if let next { sink = next }
            if lost > 0 { batch.append(contentsOf: "{\"log\":\"dropped\",\"lines\":\(lost)}\n".utf8) }
            write(batch)
            batch.removeAll(keepingCapacity: true)
            if isLast { return }
        }
    }

    private func write(_ batch: [UInt8]) {
        var written = 0
        while written < batch.count {
            let count = batch.withUnsafeBytes {
                Glibc.write(
                    sink.descriptor, $0.baseAddress.unsafelyUnwrapped + written, batch.count - written)
            }
            if count < 0, errno == EINTR { continue }
            // A sink that is gone or full loses lines; the service does not stop because of its log.
            guard count > 0 else { return }
            written += count
        }
    }
}
