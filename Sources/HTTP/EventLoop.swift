import CEvent
import CountersignMemory
import CountersignThreads
import CountersignWire
import Glibc
import Synchronization

/// One thread with one libevent base: it watches descriptors, ticks once a second and runs the Swift tasks
/// of its connections.
///
/// The loop is the task executor of the connections that it accepts: a handler resumes on the thread of its
/// socket, and a request never changes threads. Except for `enqueue`, `perform`, `stop` and `join`, every
/// member is used on the loop's own thread only; this confinement, not a lock, makes the class safe to
/// share.
package final class EventLoop: TaskExecutor, @unchecked Sendable {
    let base: OpaquePointer
    /// Whole seconds of the monotonic clock, as of the last turn that served a connection, or the last tick.
    package private(set) var seconds = EventLoop.monotonicSeconds()
    /// `Date: …` with its line end, as of the last second. Source: RFC 9110 §6.6.1.
    private(set) var dateLine = DateField.bytes(at: DateField.now())
    let buffers = BufferPool()
    /// Apart from the others: a response that waits for its client mostly fills little of its buffer, and a
    /// buffer that was filled once keeps its memory.
    let outputs = BufferPool()
    /// The number of turns so far; each turn polls the descriptors once.
    private(set) var turn: UInt64 = 0
    private let schedule = LoopTimeScheduler()
    /// How late each tick was: the time for which work kept the loop from its next poll.
    package let lag = DurationHistogram()
    /// When the last tick began, in nanoseconds; nil before the first.
    private var ticked: Int64?
    /// Counts the connections that waited for a turn; the listener sets it.
    var counters: EngineCounters?

    private let threadID = Atomic<UInt>(0)
    private var thread: WorkerThreads?
    private var isStopping = false
    private var wakeEvent: OpaquePointer?
    private var tickEvent: OpaquePointer?
    private var sweeps: [() -> Void] = []
    private var poll = PollRecord()

    /// Jobs enqueued on the loop's own thread, and those of them that run now.
    private var local: [UnownedJob] = []
    private var running: [UnownedJob] = []
    private let inbox: EventLoopInbox
    /// What the inbox had, while it is dealt with; kept for its memory.
    private var received: [EventLoopInbox.Item] = []

    package init() throws(HTTPError) {
        guard let config = event_config_new() else { throw HTTPError("libevent is out of memory") }
        defer { event_config_free(config) }
        // Only this thread touches the base; the others wake it through the inbox's eventfd.
        event_config_set_flag(config, Int32(EVENT_BASE_FLAG_NOLOCK.rawValue))
        guard let base = event_base_new_with_config(config) else {
            throw .system("cannot make an event loop")
        }
        self.base = base
        inbox = try EventLoopInbox()
    }

    deinit {
        if let wakeEvent { event_free(wakeEvent) }
        if let tickEvent { event_free(tickEvent) }
        event_base_free(base)
    }

    // MARK: Running

    /// The scheduling priority of the loop's thread, which matters when more threads are runnable than
    /// there are cores.
    package enum Priority: Sendable {
        case normal
        /// Above the other threads where the process may raise it (CAP_SYS_NICE, RLIMIT_NICE); otherwise
        /// normal.
        case raised
    }

    private var priority = Priority.normal

    /// Starts the loop's thread.
    package func start(name: String, priority: Priority = .normal) throws(HTTPError) {
        self.priority = priority
        let context = Unmanaged.passUnretained(self).toOpaque()
        wakeEvent = event_new(
            base, inbox.descriptor, Int16(EV_READ | EV_PERSIST),
            { _, _, context in
                EventLoop.of(context).drainInbox()
            }, context)
        tickEvent = event_new(
            base, -1, Int16(EV_PERSIST), { _, _, context in EventLoop.of(context).tick() }, context)
        var second = timeval(tv_sec: 1, tv_usec: 0)
        guard let wakeEvent, let tickEvent, event_add(wakeEvent, nil) == 0, event_add(tickEvent, &second) == 0
        else {
            throw .system("cannot watch the event loop's own descriptor")
        }
        do {
            thread = try WorkerThreads(purpose: "for an event loop") { [self] in
                pthread_setname_np(pthread_self(), name)
                run()
            }
        } catch {
            throw HTTPError(error.message)
        }
    }

    /// Ends the loop after its current turn.
    package func stop() { perform { self.isStopping = true } }

    /// Waits until the loop's thread has ended; call after ``stop()``.
    package func join() { thread?.join() }

    /// Calls `body` once a second on the loop's thread; call before ``start(name:priority:)`` or on the loop.
    func onTick(_ body: @escaping () -> Void) { sweeps.append(body) }

    private static func of(_ context: UnsafeMutableRawPointer?) -> EventLoop {
        // The base calls back only while the loop runs, and `run` holds the loop.
        Unmanaged<EventLoop>.fromOpaque(context.unsafelyUnwrapped).takeUnretainedValue()
    }

    private func run() {
        threadID.store(UInt(pthread_self()), ordering: .relaxed)
        // On Linux this is the priority of the calling thread alone.
        if priority == .raised { setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, -5) }
        drainInbox()
        while !isStopping {
            turn &+= 1
            poll.begin(on: base)
            let isBusy = !local.isEmpty || schedule.hasWaiting
            event_base_loop(base, isBusy ? EVLOOP_ONCE | EVLOOP_NONBLOCK : EVLOOP_ONCE)
            poll.end(on: base)
            serveReadable()
            sendAll()
            if !local.isEmpty { drainJobs(for: LoopTimeScheduler.turnLength) }
            sendAll()
            resumeWaiting()
            sendAll()
        }
    }

    private func tick() {
        let now = EventLoop.nanoseconds()
        // A tick that follows a late one comes early.
        if let ticked { lag.record(nanoseconds: UInt64(max(0, now &- ticked &- 1_000_000_000))) }
        ticked = now
        seconds = now / 1_000_000_000
        dateLine = DateField.bytes(at: DateField.now())
        for stream in streams { stream.takeUnretainedValue().sweep(seconds) }
        for sweep in sweeps { sweep() }
        endUncharged()
    }

    // MARK: Deadlines

    /// Every open stream of the loop, at the index that the stream stores. Unretained: a stream removes
    /// itself when it closes.
    private var streams: [Unmanaged<Stream>] = []

    func add(_ stream: Stream) {
        stream.place = streams.count
        streams.append(.passUnretained(stream))
    }

    func remove(_ stream: Stream) {
        let last = streams.removeLast()
        guard stream.place < streams.count else { return }
        streams[stream.place] = last
        last.takeUnretainedValue().place = stream.place
    }

    // MARK: Turns

    /// When the current job began, and when its part of the turn ends: nanoseconds of the monotonic clock.
    package private(set) var jobBegan: Int64 = 0
    private var partEnds: Int64 = 0
    /// The share that is charged for the current job: that of the last client whose bytes the job touched.
    var charged: AddressTimeShare?

    /// Sets it. Mostly it is that share already, and comparing costs less than counting references.
    func charge(_ share: AddressTimeShare) { if charged !== share { charged = share } }

    /// Runs jobs for about `length` nanoseconds; the remaining jobs run after the next poll. Jobs that a
    /// job enqueues run in the same turn: most are the next step of the same request.
    private func drainJobs(for length: Int64) {
        var now = EventLoop.nanoseconds()
        seconds = now / 1_000_000_000
        partEnds = now &+ length
        let executor = asUnownedTaskExecutor()
        while !local.isEmpty, now < partEnds {
            swap(&local, &running)
            var next = 0
            while next < running.count, now < partEnds {
                jobBegan = now
                running[next].runSynchronously(on: executor)
                next += 1
                now = EventLoop.nanoseconds()
                if let share = charged {
                    share.spend(now &- jobBegan, in: turn)
                    charged = nil
                }
            }
            if next < running.count { local.insert(contentsOf: running[next...], at: 0) }
            running.removeAll(keepingCapacity: true)
        }
        // The time of jobs is not that of what is sent after them.
        if callbackTurn == turn { callbackEnded = now }
    }

    /// The turn in which a callback ran last, and when the callback ended.
    private var callbackTurn: UInt64 = 0
    private var callbackEnded: Int64 = 0

    /// Begins the measurement of a callback of the poller, which is charged like a job. Every callback of a
    /// turn but the first begins when the one before it ended: one reading of the clock is sufficient.
    func beginCallback() {
        if callbackTurn != turn {
            callbackTurn = turn
            callbackEnded = EventLoop.nanoseconds()
            seconds = callbackEnded / 1_000_000_000
            partEnds = callbackEnded &+ LoopTimeScheduler.turnLength
        }
        jobBegan = callbackEnded
    }

    /// Called at the end of the loop's other callbacks, whose time no connection is charged for.
    func endUncharged() {
        if callbackTurn == turn { callbackEnded = EventLoop.nanoseconds() }
    }

    func endCallback() {
        callbackEnded = EventLoop.nanoseconds()
        guard let share = charged else { return }
        share.spend(callbackEnded &- jobBegan, in: turn)
        charged = nil
    }

    /// Resumes connections that wait for a turn, one address after the other, for a bounded time, and at
    /// least one of them.
    private func resumeWaiting() {
        guard schedule.hasWaiting else { return }
        let end = EventLoop.nanoseconds() &+ LoopTimeScheduler.waitingLength
        repeat {
            switch schedule.popFirst(in: turn) {
            case nil: return
            case .task(let continuation): continuation.resume()
            case .connection(let connection): serveWaiting(connection)
            }
            if !local.isEmpty { drainJobs(for: LoopTimeScheduler.waitingAllowance) }
            sendIfDue()
        } while EventLoop.nanoseconds() < end
    }

    private func serveWaiting(_ connection: Connection) {
        (callbackTurn, callbackEnded) = (turn, EventLoop.nanoseconds())
        seconds = callbackEnded / 1_000_000_000
        partEnds = callbackEnded &+ LoopTimeScheduler.waitingAllowance
        connection.serveInTurn()
    }

    /// Whether `share` has used its part of this turn. `isMeasured` reads the clock, for a job that has run
    /// for a while; for a job that has just begun, the booked time is exact enough.
    func hasUsedTurn(_ share: AddressTimeShare, isMeasured: Bool) -> Bool {
        let now = isMeasured ? EventLoop.nanoseconds() : jobBegan
        return now >= partEnds || share.isUsedUp(in: turn, more: now &- jobBegan)
    }

    /// Suspends the caller until the turn of its address comes, in a later part of this turn or in a later
    /// one.
    func waitForTurn(_ share: AddressTimeShare) async {
        counters?.add(.deferredTurn)
        await withUnsafeContinuation { schedule.append(.task($0), of: share) }
    }

    /// The same for a connection that needs no task: calls ``Connection/serveInTurn()`` then.
    func queueForTurn(_ connection: Connection, of share: AddressTimeShare) {
        counters?.add(.deferredTurn)
        schedule.append(.connection(connection), of: share)
    }

    func acquireShare(of address: NetworkAddress) -> AddressTimeShare { schedule.acquire(address) }

    func releaseShare(_ share: AddressTimeShare) { schedule.release(share) }

    package static func nanoseconds() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
    }

    /// Whole seconds of the monotonic clock, which cannot be set.
    package static func monotonicSeconds() -> Int64 { nanoseconds() / 1_000_000_000 }

    // MARK: Polls

    /// Streams whose waiters are called when all callbacks of the poll have run, and those whose waiters are
    /// called now.
    private var readable: [Stream] = []
    private var serving: [Stream] = []

    /// Called once for each descriptor whose input the poller reports.
    func didReportInput() { poll.didReportInput() }

    /// See ``PollRecord/isComplete``.
    var hasReportedAllInput: Bool { poll.isComplete }

    /// Calls the waiter of `stream` after the callbacks of the poll.
    func deferWaiter(of stream: Stream) { readable.append(stream) }

    private func serveReadable() {
        guard !readable.isEmpty else { return }
        swap(&readable, &serving)
        for stream in serving {
            stream.callDeferredWaiter()
            sendIfDue()
        }
        serving.removeAll(keepingCapacity: true)
    }

    // MARK: Late sends

    /// What is sent when others of the same turn have been served as well: see ``LateSender``.
    private var senders: [any LateSender] = []
    /// Those at the beginning of `senders` that have been called.
    private var calledSenders = 0
    /// When the first of `senders` was queued, in nanoseconds of the monotonic clock.
    private var firstQueued: Int64 = 0
    /// The senders that wait at most while others are served, and the nanoseconds that the first of them
    /// waits, beside the time of one request.
    private static let mostSenders = 32
    private static let longestWait: Int64 = 250_000

    /// Calls ``LateSender/sendNow()`` later in this turn.
    func sendLate(_ sender: any LateSender) {
        if senders.isEmpty { firstQueued = jobBegan }
        senders.append(sender)
    }

    /// Sends if enough senders wait, or the first has waited long enough. Called between two callbacks.
    func sendIfDue() {
        guard !senders.isEmpty,
            senders.count >= EventLoop.mostSenders || callbackEnded &- firstQueued > EventLoop.longestWait
        else { return }
        sendAll()
    }

    private func sendAll() {
        guard !senders.isEmpty else { return }
        // A sender may queue another one.
        while calledSenders < senders.count {
            let sender = senders[calledSenders]
            calledSenders += 1
            beginCallback()
            sender.sendNow()
            endCallback()
        }
        senders.removeAll(keepingCapacity: true)
        calledSenders = 0
    }

    // MARK: Work from elsewhere

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        if isOnLoop { local.append(job) } else { inbox.put(.job(job)) }
    }

    /// Calls `body` on the loop's thread in its next turn.
    package func perform(_ body: @escaping @Sendable () -> Void) { inbox.put(.call(body)) }

    package var isOnLoop: Bool { threadID.load(ordering: .relaxed) == UInt(pthread_self()) }

    private func drainInbox() {
        inbox.takeAll(into: &received)
        for item in received {
            switch item {
            case .job(let job): local.append(job)
            case .call(let body): body()
            }
        }
        received.removeAll(keepingCapacity: true)
        endUncharged()
    }
}

/// Something that sends later in the loop's turn. A send wakes the peer that waits for it; on the same
/// machine the peer often takes the processor at once, and the loop is interrupted between two requests.
/// Sends that follow one another interrupt it less: docs/decisions/0093-late-sends.md. Confined to the loop.
protocol LateSender: AnyObject {
    /// Called once for each ``EventLoop/sendLate(_:)``, as the only code that runs.
    func sendNow()
}

/// The work that other threads submit to a loop, and the descriptor that wakes it. Safe to share: `items`
/// is accessed under the lock.
private final class EventLoopInbox: Sendable {
    enum Item {
        case job(UnownedJob)
        case call(@Sendable () -> Void)
    }

    let descriptor: Int32
    private let items = Locked<[Item]>([])

    init() throws(HTTPError) {
        descriptor = eventfd(0, Int32(EFD_NONBLOCK | EFD_CLOEXEC))
        guard descriptor >= 0 else { throw .system("cannot make an eventfd") }
    }

    deinit { close(descriptor) }

    func put(_ item: Item) {
        let wasEmpty = items.with { items in
            items.append(item)
            return items.count == 1
        }
        if wasEmpty { eventfd_write(descriptor, 1) }
    }

    /// `taken` is empty.
    func takeAll(into taken: inout [Item]) {
        var count: eventfd_t = 0
        eventfd_read(descriptor, &count)
        items.with { swap(&$0, &taken) }
    }
}
