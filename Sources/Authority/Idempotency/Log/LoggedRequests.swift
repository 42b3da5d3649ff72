import CountersignGate
import CountersignThreads
import CountersignWire

/// Keyed requests in a ``RequestLog``, with group commit: one thread takes all waiting changes, appends them
/// with one write, and makes the beginnings among them durable with one `fdatasync`. During it the next
/// changes gather.
///
/// Everything is bounded: the beginnings that wait, and the bytes of answers that do.
package final class LoggedRequests: ImmediateIdempotencyStore {
    package struct Bounds: Sendable {
        /// Beginnings that may wait.
        package var waiting = 4_096
        /// Bytes of answers that may wait: above, the requests that bring answers wait, too.
        package var bytes = 8 << 20
        /// Changes that are appended together.
        package var together = 512

        package init() {}
    }

    fileprivate enum Job: Sendable {
        case begin(Beginning)
        case finish(Ending)
        case abandon(IdempotentRequest)
        case forget(before: Int64)
    }

    fileprivate typealias Outcome = Result<IdempotencyState, Refusal>

    /// References, so that a job is not copied on its way.
    fileprivate final class Beginning: Sendable {
        let request: IdempotentRequest
        let bounds: IdempotencyBounds
        let caller: Caller

        init(_ request: IdempotentRequest, within bounds: IdempotencyBounds, for caller: Caller) {
            (self.request, self.bounds, self.caller) = (request, bounds, caller)
        }
    }

    fileprivate final class Ending: Sendable {
        let request: IdempotentRequest
        let answer: StoredAnswer
        let bounds: IdempotencyBounds
        /// As it counts to the bytes that wait.
        var bytes: Int { answer.body.count + 256 }

        init(_ request: IdempotentRequest, with answer: StoredAnswer, within bounds: IdempotencyBounds) {
            (self.request, self.answer, self.bounds) = (request, answer, bounds)
        }
    }

    /// What waits for a beginning.
    fileprivate enum Caller: Sendable {
        case task(UnsafeContinuation<Outcome, Never>)
        case receiver(any IdempotencyStateReceiver)

        func resume(returning outcome: Outcome) {
            switch self {
            case .task(let continuation): continuation.resume(returning: outcome)
            case .receiver(let receiver): receiver.didBegin(outcome)
            }
        }
    }

    private struct Queue {
        var jobs: [Job] = []
        /// Beginnings among them.
        var waiting = 0
        /// Bytes of the answers among them.
        var bytes = 0
        var isClosed = false
        /// Requests that wait until there is room for answers.
        var stalled: [UnsafeContinuation<Void, Never>] = []
    }

    private let queue = Monitor(Queue())
    private let bounds: Bounds
    private let threads: WorkerThreads

    /// Starts the thread, which then owns `log`. `note` receives messages for operators, and `didFail` is
    /// called when nothing is written any more; both on that thread.
    package init(
        _ log: RequestLog, bounds: Bounds = Bounds(), note: @escaping @Sendable (String) -> Void = { _ in },
        didFail: @escaping @Sendable (OperationalError) -> Void = { _ in }
    ) throws(OperationalError) {
        self.bounds = bounds
        let queue = queue
        threads = try WorkerThreads(purpose: "to write the log of keyed requests on") {
            LoggedRequests.run(log, queue: queue, together: bounds.together, note: note, didFail: didFail)
        }
    }

    deinit { close() }

    package func begin(
        _ request: IdempotentRequest, within limits: IdempotencyBounds
    ) async throws(Refusal) -> IdempotencyState {
        let outcome = await withUnsafeContinuation { add(request, within: limits, for: .task($0)) }
        return try outcome.get()
    }

    package func begin(
        _ request: IdempotentRequest, within limits: IdempotencyBounds,
        reportingTo receiver: any IdempotencyStateReceiver
    ) {
        add(request, within: limits, for: .receiver(receiver))
    }

    private func add(_ request: IdempotentRequest, within limits: IdempotencyBounds, for caller: Caller) {
        let beginning = Beginning(request, within: limits, for: caller)
        let refusal = queue.with { (queue) -> Refusal? in
            if queue.isClosed {
                return Refusal(.unavailable, detail: "the server is stopping", retryAfter: 1)
            }
            guard queue.waiting < bounds.waiting else {
                return Refusal(
                    .unavailable, detail: "\(queue.waiting) keyed requests wait for the disk", retryAfter: 1)
            }
            queue.waiting += 1
            queue.jobs.append(.begin(beginning))
            if queue.jobs.count == 1 { self.queue.wakeOne() }
            return nil
        }
        if let refusal { caller.resume(returning: .failure(refusal)) }
    }

    /// Returns before the answer is written, unless too many wait. At the stop all are written.
    package func finish(
        _ request: IdempotentRequest, with answer: StoredAnswer, within limits: IdempotencyBounds
    ) async throws(Refusal) {
        let ending = Ending(request, with: answer, within: limits)
        if addIfRoom(ending) { return }
        await withUnsafeContinuation { (waiting: UnsafeContinuation<Void, Never>) in
            let mayGoOn = queue.with { queue in
                add(.finish(ending), bytes: ending.bytes, to: &queue)
                guard queue.bytes >= bounds.bytes, !queue.isClosed else { return true }
                queue.stalled.append(waiting)
                return false
            }
            if mayGoOn { waiting.resume() }
        }
    }

    package func finishIfReady(
        _ request: IdempotentRequest, with answer: StoredAnswer, within limits: IdempotencyBounds
    ) -> Bool { addIfRoom(Ending(request, with: answer, within: limits)) }

    private func addIfRoom(_ ending: Ending) -> Bool {
        queue.with { queue in
            guard queue.bytes < bounds.bytes || queue.isClosed else { return false }
            add(.finish(ending), bytes: ending.bytes, to: &queue)
            return true
        }
    }

    package func abandon(_ request: IdempotentRequest) async { abandonAtOnce(request) }

    package func abandonAtOnce(_ request: IdempotentRequest) {
        queue.with { add(.abandon(request), bytes: 256, to: &$0) }
    }

    package func forget(before time: TrustedTime) {
        queue.with { queue in
            // One at a time: a timer asks for it, however long the disk takes.
            let isWaiting = queue.jobs.contains { if case .forget = $0 { true } else { false } }
            if !isWaiting { add(.forget(before: time.seconds), bytes: 0, to: &queue) }
        }
    }

    private func add(_ job: Job, bytes: Int, to queue: inout Queue) {
        // What comes after the end is lost, so the request reads as unfinished.
        guard !queue.isClosed else { return }
        queue.bytes += bytes
        queue.jobs.append(job)
        if queue.jobs.count == 1 { self.queue.wakeOne() }
    }

    private func close() {
        queue.with { $0.isClosed = true }
        queue.wakeAll()
    }

    /// Refuses further changes, writes the waiting ones, and ends the thread. Do not call it on that thread.
    package func stop() {
        close()
        threads.join()
    }

    // MARK: The thread

    private static func run(
        _ log: RequestLog, queue: Monitor<Queue>, together: Int, note: @Sendable (String) -> Void,
        didFail: @Sendable (OperationalError) -> Void
    ) {
        var (isFailing, hasEnded) = (false, false)
        func report(_ fault: OperationalError?) {
            guard let fault else {
                if isFailing { note("keyed requests are accepted again") }
                return isFailing = false
            }
            if let failure = log.failure {
                if !hasEnded {
                    note("keyed requests are refused, until a restart: \(fault.message)")
                    didFail(failure)
                }
                hasEnded = true
            } else if !isFailing {
                note("keyed requests are refused: \(fault.message)")
            }
            isFailing = true
        }
        // Kept, so that they are not allocated for each group.
        var jobs: [Job] = []
        var beginnings: [RequestLog.Beginning] = []
        while true {
            take(&jobs, from: queue, most: together)
            if jobs.isEmpty { break }
            report(LoggedRequests.write(jobs, to: log, noting: &beginnings))
            jobs.removeAll(keepingCapacity: true)
            beginnings.removeAll(keepingCapacity: true)
            while log.failure == nil, log.isSpacious, queue.with({ $0.jobs.isEmpty }) {
                guard (try? log.carry(most: 1 << 20)) != nil else { break }
            }
            if log.failure == nil, log.isSpacious { try? log.carry(most: 256 << 10) }
        }
        try? log.synchronise()
    }

    /// Waits for jobs, and moves at most `most` of them to `jobs`, which is empty; none at the end.
    private static func take(_ jobs: inout [Job], from queue: Monitor<Queue>, most: Int) {
        let stalled = queue.wait { (queue) -> [UnsafeContinuation<Void, Never>]? in
            guard !queue.jobs.isEmpty else { return queue.isClosed ? queue.stalled : nil }
            if queue.jobs.count <= most {
                swap(&jobs, &queue.jobs)
            } else {
                jobs.append(contentsOf: queue.jobs.prefix(most))
                queue.jobs.removeFirst(most)
            }
            for job in jobs {
                switch job {
                case .begin: queue.waiting -= 1
                case .finish(let ending): queue.bytes -= ending.bytes
                case .abandon: queue.bytes -= 256
                case .forget: break
                }
            }
            defer { queue.stalled = [] }
            return queue.stalled
        }
        for continuation in stalled { continuation.resume() }
    }

    /// Nil if all was written.
    private static func write(
        _ jobs: [Job], to log: RequestLog, noting beginnings: inout [RequestLog.Beginning]
    ) -> OperationalError? {
        var (hasBegun, hasForgotten) = (false, false)
        var fault: OperationalError?
        do {
            try log.transaction(reserving: bytes(of: jobs)) { () throws(OperationalError) in
                for job in jobs {
                    switch job {
                    case .begin(let job):
                        let beginning = log.begin(job.request, within: job.bounds)
                        if case .begun = beginning { hasBegun = true }
                        beginnings.append(beginning)
                    case .finish(let job): log.finish(job.request, with: job.answer, within: job.bounds)
                    case .abandon(let request): log.abandon(request)
                    case .forget(let time):
                        log.forget(before: time)
                        hasForgotten = true
                    }
                }
            }
            if hasBegun { try log.synchronise() }
        } catch {
            fault = error
        }
        var next = beginnings[...]
        for case .begin(let job) in jobs {
            // What is known can be told although nothing can be written.
            let beginning = next.popFirst() ?? log.find(job.request)
            job.caller.resume(returning: outcome(of: beginning, in: log, fault: fault))
        }
        guard hasForgotten, fault == nil else { return fault }
        // From time to time, also answers are made durable.
        do {
            try log.dropSegments()
            try log.synchronise()
        } catch {
            return error
        }
        return nil
    }

    private static func bytes(of jobs: [Job]) -> Int {
        jobs.reduce(0) { sum, job in
            switch job {
            case .begin: sum + RequestLog.beginningBytes
            case .finish(let job):
                job.answer.fields.reduce(sum + 2 * RequestLogRecord.mostBytes + job.answer.body.count) {
                    $0 + 8 + $1.name.utf8.count + $1.value.count
                }
            case .abandon, .forget: sum + RequestLogRecord.mostBytes
            }
        }
    }

    private static func outcome(
        of beginning: RequestLog.Beginning?, in log: RequestLog, fault: OperationalError?
    ) -> Outcome {
        // A request whose record may not have reached the disk is not forwarded; what is known of others is
        // told.
        switch (beginning, fault) {
        case (.begun, nil): return .success(.begun)
        case (.unfinished, _): return .success(.unfinished)
        case (.otherRequest, _): return .success(.otherRequest)
        case (.full, _): return .success(.full)
        case (.finished(let entry), _):
            do {
                return .success(.finished(try log.answer(of: entry)))
            } catch {
                return .failure(refusal(error, in: log))
            }
        case (.begun, let fault?), (nil, let fault?): return .failure(refusal(fault, in: log))
        case (nil, nil): return .failure(Refusal(.unavailable, detail: "the log did not take the request"))
        }
    }

    private static func refusal(_ fault: OperationalError, in log: RequestLog) -> Refusal {
        // After a failure, only a restart helps.
        Refusal(.unavailable, detail: fault.message, retryAfter: log.failure == nil ? 1 : 60)
    }
}
