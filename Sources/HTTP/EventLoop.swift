import CEvent
import Glibc
import Synchronization

/// One thread, one libevent base: descriptors, a tick a second, and the Swift tasks that belong to them.
///
/// It is the task executor of the connections it accepts, so that a handler resumes where its socket is and a request
/// is never handed from thread to thread. Everything but `enqueue`, `perform`, `stop` and `join` is called on the loop's own
/// thread; that, and not a lock, is what makes the class safe to share.
package final class EventLoop: TaskExecutor, @unchecked Sendable {
    let base: OpaquePointer
    /// Whole seconds of a clock that nobody sets, as of the last turn of the loop.
    package private(set) var seconds = EventLoop.monotonicSeconds()
    let buffers = BufferPool()
    /// Counts the looks at the descriptors.
    private(set) var turn: UInt64 = 0

    private let threadID = Atomic<UInt>(0)
    private var thread: pthread_t?
    private var isStopping = false
    private var wakeEvent: OpaquePointer?
    private var tickEvent: OpaquePointer?
    private var sweeps: [() -> Void] = []

    /// Jobs enqueued on the loop's own thread, and those of them that run now.
    private var local: [UnownedJob] = []
    private var running: [UnownedJob] = []
    private let inbox: Inbox

    package init() throws(HTTPFault) {
        guard let config = event_config_new() else { throw HTTPFault("libevent is out of memory") }
        defer { event_config_free(config) }
        // Only this thread touches the base; the others wake it through the inbox's eventfd.
        event_config_set_flag(config, Int32(EVENT_BASE_FLAG_NOLOCK.rawValue))
        guard let base = event_base_new_with_config(config) else { throw .system("cannot make an event loop") }
        self.base = base
        inbox = try Inbox()
    }

    deinit {
        if let wakeEvent { event_free(wakeEvent) }
        if let tickEvent { event_free(tickEvent) }
        event_base_free(base)
    }

    // MARK: Running

    /// Starts the loop's thread.
    package func start(name: String) throws(HTTPFault) {
        let context = Unmanaged.passUnretained(self).toOpaque()
        wakeEvent = event_new(
            base, inbox.descriptor, Int16(EV_READ | EV_PERSIST),
            { _, _, context in
                EventLoop.of(context).drainInbox()
            }, context)
        tickEvent = event_new(base, -1, Int16(EV_PERSIST), { _, _, context in EventLoop.of(context).tick() }, context)
        var second = timeval(tv_sec: 1, tv_usec: 0)
        guard let wakeEvent, let tickEvent, event_add(wakeEvent, nil) == 0, event_add(tickEvent, &second) == 0 else {
            throw .system("cannot watch the event loop's own descriptor")
        }
        var thread = pthread_t()
        let failure = pthread_create(
            &thread, nil,
            { context in
                guard let context else { return nil }
                Unmanaged<EventLoop>.fromOpaque(context).takeRetainedValue().run()
                return nil
            }, Unmanaged.passRetained(self).toOpaque())
        guard failure == 0 else { throw .system("cannot start a thread", failure) }
        pthread_setname_np(thread, name)
        self.thread = thread
    }

    /// Ends the loop after its present turn.
    package func stop() { perform { self.isStopping = true } }

    /// Waits until the loop's thread has ended; call after ``stop()``.
    package func join() {
        if let thread { pthread_join(thread, nil) }
    }

    /// Calls `body` once a second on the loop's thread; call before ``start(name:)`` or on the loop.
    func onTick(_ body: @escaping () -> Void) { sweeps.append(body) }

    private static func of(_ context: UnsafeMutableRawPointer?) -> EventLoop {
        // The base calls back only while the loop runs, and `run` holds the loop.
        Unmanaged<EventLoop>.fromOpaque(context.unsafelyUnwrapped).takeUnretainedValue()
    }

    private func run() {
        threadID.store(UInt(pthread_self()), ordering: .relaxed)
        drainInbox()
        while !isStopping {
            turn &+= 1
            event_base_loop(base, local.isEmpty ? EVLOOP_ONCE : EVLOOP_ONCE | EVLOOP_NONBLOCK)
            drainJobs()
        }
    }

    private func tick() {
        seconds = EventLoop.monotonicSeconds()
        for stream in streams { stream.takeUnretainedValue().sweep(seconds) }
        for sweep in sweeps { sweep() }
    }

    // MARK: Deadlines

    /// Every open stream of the loop, each at the place it remembers. Unretained: a stream takes itself out as it closes.
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

    /// A job may enqueue more; they run in this turn too, for they are mostly the next step of the same request.
    private func drainJobs() {
        seconds = EventLoop.monotonicSeconds()
        let executor = asUnownedTaskExecutor()
        while !local.isEmpty {
            swap(&local, &running)
            for job in running { job.runSynchronously(on: executor) }
            running.removeAll(keepingCapacity: true)
        }
    }

    /// Whole seconds of a clock that nobody sets.
    package static func monotonicSeconds() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC_COARSE, &time)
        return Int64(time.tv_sec)
    }

    // MARK: Work from elsewhere

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        if isOnLoop { local.append(job) } else { inbox.put(.job(job)) }
    }

    /// Calls `body` on the loop's thread, at its next turn.
    package func perform(_ body: @escaping @Sendable () -> Void) { inbox.put(.call(body)) }

    package var isOnLoop: Bool { threadID.load(ordering: .relaxed) == UInt(pthread_self()) }

    private func drainInbox() {
        for item in inbox.takeAll() {
            switch item {
            case .job(let job): local.append(job)
            case .call(let body): body()
            }
        }
    }
}

/// What other threads hand to a loop, and the descriptor that wakes it. Safe to share: `items` is touched under the
/// lock.
private final class Inbox: @unchecked Sendable {
    enum Item {
        case job(UnownedJob)
        case call(@Sendable () -> Void)
    }

    let descriptor: Int32
    private let lock = Lock()
    private var items: [Item] = []

    init() throws(HTTPFault) {
        descriptor = eventfd(0, Int32(EFD_NONBLOCK | EFD_CLOEXEC))
        guard descriptor >= 0 else { throw .system("cannot make an eventfd") }
    }

    deinit { close(descriptor) }

    func put(_ item: Item) {
        let wasEmpty = lock.hold {
            items.append(item)
            return items.count == 1
        }
        if wasEmpty { eventfd_write(descriptor, 1) }
    }

    func takeAll() -> [Item] {
        var count: eventfd_t = 0
        eventfd_read(descriptor, &count)
        return lock.hold {
            let taken = items
            items = []
            return taken
        }
    }
}
