import CCrypto
import CEvent
import CountersignWire
import Glibc

/// A connected socket, plain or under TLS, whose reads and writes wait on its loop.
///
/// Confined to its loop. At most one task or ``StreamWaiter`` waits at a time to read, and one task to write.
/// Every wait ends: when the socket is ready, when `deadline` has passed, or when the stream is closed.
final class Stream: @unchecked Sendable {
    enum StreamError: Error { case closed, timedOut, tls }
    /// How a wait ended.
    enum Wake { case ready, timedOut, closed }
    enum IOResult { case done(Int), wantsRead, wantsWrite, ended, failed(StreamError) }

    let loop: EventLoop
    let descriptor: Int32
    private(set) var ssl: OpaquePointer?
    private var readEvent: OpaquePointer?
    private var writeEvent: OpaquePointer?
    private var isReadArmed = false
    private var reader: UnsafeContinuation<Wake, Never>?
    /// Waits in the place of `reader`, without a task.
    private var waiter: (any StreamWaiter)?
    private var waiterOrder = WaiterOrder.atOnce
    /// Whether input was reported and the waiter is yet to be called, in the same turn.
    private var isReported = false
    private var writer: UnsafeContinuation<Wake, Never>?
    private(set) var isClosed = false
    /// Whether the stream's task waits for the socket or for a turn, or has been resumed and not yet run.
    private(set) var isSuspended = false
    /// The stream's index in its loop's table.
    var place = 0
    /// The deadlines of a wait to read and of a wait to write: seconds of the loop's clock, `Int64.max` for
    /// none. Absolute: progress does not extend them.
    var readDeadline = Int64.max
    var writeDeadline = Int64.max
    /// Sets both deadlines; reads the earlier one.
    var deadline: Int64 {
        get { min(readDeadline, writeDeadline) }
        set { (readDeadline, writeDeadline) = (newValue, newValue) }
    }
    /// The share that is charged for this stream's work; nil for connections that the gateway opened.
    var share: AddressTimeShare?
    /// Whether the task has just been resumed, so that its job has used no time worth measuring.
    private var hasJustWaited = true
    /// Bytes moved, plus a fixed amount for each call, since the clock was last read.
    private var unmeasured = 0
    /// The rate at which the peer must read what waits to be sent.
    var pace: ResponseRateMonitor?
    /// Whether input came, or the peer closed, while no task was reading: a pooled upstream connection with
    /// this signal must not be used again.
    private(set) var hasUnreadSignal = false

    /// Takes over the descriptor; ``close()`` closes it.
    init(descriptor: Int32, loop: EventLoop) {
        self.descriptor = descriptor
        self.loop = loop
        let context = Unmanaged.passUnretained(self).toOpaque()
        readEvent = event_new(
            loop.base, descriptor, Int16(EV_READ | EV_PERSIST),
            { _, _, context in
                Stream.of(context).didBecomeReadable()
            }, context)
        writeEvent = event_new(
            loop.base, descriptor, Int16(EV_WRITE),
            { _, _, context in
                Stream.of(context).resumeWriter(.ready)
            }, context)
        loop.add(self)
    }

    deinit { close() }

    private static func of(_ context: UnsafeMutableRawPointer?) -> Stream {
        // `close` frees the events before the stream is deallocated, so the stream of a callback is alive.
        Unmanaged<Stream>.fromOpaque(context.unsafelyUnwrapped).takeUnretainedValue()
    }

    func close() {
        guard !isClosed else { return }
        isClosed = true
        loop.remove(self)
        if let readEvent { event_free(readEvent) }
        if let writeEvent { event_free(writeEvent) }
        if let ssl { SSL_free(ssl) }
        (readEvent, writeEvent, ssl) = (nil, nil, nil)
        Glibc.close(descriptor)
        resumeReader(.closed)
        resumeWriter(.closed)
    }

    /// Ends the waits whose deadline has passed. The loop calls it at each tick.
    func sweep(_ now: Int64) {
        if readDeadline <= now, !isReported { resumeReader(.timedOut) }
        if writeDeadline <= now { return resumeWriter(.timedOut) }
        guard pace != nil, writer != nil else { return }
        if pace?.isTooSlow(unsent: Int(cs_unsent_bytes(descriptor)), now: now) == true {
            loop.counters?.add(.cutSlowReader)
            resumeWriter(.timedOut)
        }
    }

    /// Ends a wait for input, as a drain does for a connection between two requests; false if no task
    /// waits, or input was reported and is about to be read.
    @discardableResult
    func interruptReader() -> Bool {
        guard awaitsInput else { return false }
        resumeReader(.closed)
        return true
    }

    /// Whether a task or a waiter waits for the peer to send, and nothing was reported.
    var awaitsInput: Bool { reader != nil || (waiter != nil && !isReported) }
    /// Whether a task waits for the peer to read what was sent.
    var awaitsOutput: Bool { writer != nil }

    /// Bytes in the socket's send buffer that the peer has not yet acknowledged.
    var unsentBytes: Int { isClosed ? 0 : Int(cs_unsent_bytes(descriptor)) }

    // MARK: Turns

    /// Counts the stream's work to another address from now on.
    func replaceShare(_ address: NetworkAddress) {
        if let share { loop.releaseShare(share) }
        share = loop.acquireShare(of: address)
    }

    /// Whether the address of this stream has used its part of the loop's turn; if so, call
    /// ``waitForTurn()`` or ``queueForTurn(_:)``.
    var mustWaitForTurn: Bool {
        guard let share else { return false }
        let isMeasured = !hasJustWaited
        hasJustWaited = false
        guard !loop.hasUsedTurn(share, isMeasured: isMeasured) else { return true }
        loop.charge(share)
        return false
    }

    /// Waits for the address's next turn. The stream reads and writes nothing meanwhile: pending bytes stay
    /// in the socket and in OpenSSL.
    func waitForTurn() async throws(StreamError) {
        guard let share else { return }
        isSuspended = true
        await loop.waitForTurn(share)
        guard beginTurn() else { throw .closed }
    }

    /// The same without a task: ``Connection/serveInTurn()`` is called. Only if ``mustWaitForTurn``.
    func queueForTurn(_ connection: Connection) {
        guard let share else { return }
        isSuspended = true
        loop.queueForTurn(connection, of: share)
    }

    /// Ends the wait for a turn; false if the stream was closed meanwhile.
    func beginTurn() -> Bool {
        isSuspended = false
        if let share { loop.charge(share) }
        hasJustWaited = true
        unmeasured = 0
        return !isClosed
    }

    /// Counts a call that moved bytes, towards the next reading of the clock.
    private func didMove(_ count: Int) {
        unmeasured &+= count &+ 4_096
    }

    private static let measureEvery = 96 << 10

    /// Whether to check the share: after a wait, since many waits may end in one turn, and after enough
    /// bytes.
    private var mustShareTurn: Bool {
        share != nil && (hasJustWaited || unmeasured >= Stream.measureEvery)
    }

    /// Whether the share leaves time to go on without waiting. If not, the next read or write that can wait
    /// waits for a turn.
    private var mayUseTurn: Bool {
        guard mustShareTurn else { return true }
        unmeasured = mustWaitForTurn ? Stream.measureEvery : 0
        return unmeasured == 0
    }

    private func shareTurn(until deadline: Int64) async throws(StreamError) {
        unmeasured = 0
        guard mustWaitForTurn else { return }
        try await waitForTurn()
        // Deadlines end only waits for the socket, and a stream that is always ready never waits for it.
        guard deadline > loop.seconds else { throw .timedOut }
    }

    // MARK: TLS

    enum Role { case server, client(host: String) }

    /// Puts TLS on the socket and finishes the handshake.
    func startTLS(_ context: TLSContext, as role: Role) async throws(StreamError) {
        guard !isClosed, let ssl = SSL_new(context.pointer) else { throw .tls }
        self.ssl = ssl
        SSL_set_fd(ssl, descriptor)
        switch role {
        case .server: SSL_set_accept_state(ssl)
        case .client(let host):
            cs_ssl_set_host_name(ssl, host)
            SSL_set1_host(ssl, host)
            SSL_set_connect_state(ssl)
        }
        while true {
            if mustWaitForTurn { try await waitForTurn() }
            switch attempt({ SSL_do_handshake(ssl) }) {
            case .done: return
            case .wantsRead: try await untilReadable()
            case .wantsWrite: try await untilWritable()
            case .ended: throw .closed
            case .failed(let failure): throw failure
            }
        }
    }

    /// Ends the output: sends TLS's close_notify, then shuts down the socket's sending side. Does not wait
    /// if close_notify does not fit into the socket's buffer.
    func shutdownOutput() {
        guard !isClosed else { return }
        if let ssl {
            ERR_clear_error()
            SSL_shutdown(ssl)
        }
        shutdown(descriptor, Int32(SHUT_WR))
    }

    /// Waits until a connection attempt ends, and throws if it failed.
    func finishConnect() async throws(StreamError) {
        try await untilWritable()
        var code: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        guard getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &size) == 0, code == 0 else {
            throw .closed
        }
    }

    // MARK: Reading and writing

    /// Reads at least one byte into `buffer` and fills it to about `most` bytes; returns 0 at the end of
    /// the input.
    func read(into buffer: Buffer, upTo most: Int = Buffer.size) async throws(StreamError) -> Int {
        while true {
            guard !isClosed else { throw .closed }
            if mustShareTurn { try await shareTurn(until: readDeadline) }
            switch readOnce(into: buffer.room(upTo: most)) {
            case .done(let count):
                didMove(count)
                buffer.didFill(count)
                return count
            case .ended: return 0
            case .wantsRead: try await untilReadable()
            case .wantsWrite: try await untilWritable()
            case .failed(let failure): throw failure
            }
        }
    }

    /// Reads what has arrived into `buffer`, to about `most` bytes; waits for nothing.
    func readIfReady(into buffer: Buffer, upTo most: Int = Buffer.size) -> IOResult {
        guard !isClosed else { return .failed(.closed) }
        let result = readOnce(into: buffer.room(upTo: most))
        if case .done(let count) = result {
            didMove(count)
            buffer.didFill(count)
        }
        return result
    }

    /// Calls `waiter` when input has arrived, the read deadline has passed or the stream has been closed;
    /// false, and nothing is done, if there is nothing to wait for. Do not call it while OpenSSL has pending
    /// input, which the poller does not see.
    func awaitInput(for waiter: any StreamWaiter, called order: WaiterOrder) -> Bool {
        guard !isClosed, !awaitsInput, readDeadline > loop.seconds else { return false }
        armRead()
        isSuspended = true
        self.waiter = waiter
        waiterOrder = order
        return true
    }

    /// Waits for input without holding a buffer; returns at once if OpenSSL has pending input.
    func untilInput() async throws(StreamError) {
        if let ssl, SSL_has_pending(ssl) == 1 { return }
        try await untilReadable()
    }

    /// Writes all of `buffer` if the socket takes it at once and the stream's address has not used its part
    /// of the turn. False otherwise: the rest is still in `buffer`, for ``write(_:)``, which also reports
    /// errors.
    func writeIfReady(_ buffer: Buffer) -> Bool {
        if let share { loop.charge(share) }
        while !buffer.isEmpty {
            guard !isClosed, mayUseTurn, case .done(let count) = writeOnce(buffer.filled) else {
                return false
            }
            didMove(count)
            pace?.didWrite(count)
            buffer.take(count)
        }
        return true
    }

    /// Writes all of `buffer` and leaves it empty. Waits while the peer does not read: this is the
    /// back-pressure.
    func write(_ buffer: Buffer) async throws(StreamError) {
        if let share { loop.charge(share) }
        while !buffer.isEmpty {
            guard !isClosed else { throw .closed }
            if mustShareTurn { try await shareTurn(until: writeDeadline) }
            switch writeOnce(buffer.filled) {
            case .done(let count):
                didMove(count)
                pace?.didWrite(count)
                buffer.take(count)
            case .wantsWrite: try await untilWritable()
            case .wantsRead: try await untilReadable()
            case .ended: throw .closed
            case .failed(let failure): throw failure
            }
        }
    }

    private func readOnce(into room: UnsafeMutableRawBufferPointer) -> IOResult {
        if let ssl {
            return attempt { SSL_read(ssl, room.baseAddress, Int32(clamping: room.count)) }
        }
        let count = recv(descriptor, room.baseAddress, room.count, 0)
        if count > 0 { return .done(count) }
        if count == 0 { return .ended }
        return errno == EAGAIN || errno == EINTR ? .wantsRead : .failed(.closed)
    }

    func writeOnce(_ bytes: UnsafeRawBufferPointer) -> IOResult {
        if let ssl {
            return attempt { SSL_write(ssl, bytes.baseAddress, Int32(clamping: bytes.count)) }
        }
        let count = send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
        if count >= 0 { return .done(count) }
        return errno == EAGAIN || errno == EINTR ? .wantsWrite : .failed(.closed)
    }

    private func attempt(_ call: () -> Int32) -> IOResult {
        // `SSL_get_error` looks at this queue, so it must be empty. It usually is, and clearing it visits
        // every place even then.
        if ERR_peek_error() != 0 { ERR_clear_error() }
        let result = call()
        if result > 0 { return .done(Int(result)) }
        guard let ssl else { return .failed(.closed) }
        switch SSL_get_error(ssl, result) {
        case SSL_ERROR_WANT_READ: return .wantsRead
        case SSL_ERROR_WANT_WRITE: return .wantsWrite
        case SSL_ERROR_ZERO_RETURN: return .ended
        case SSL_ERROR_SYSCALL: return .failed(.closed)
        default: return .failed(.tls)
        }
    }

    // MARK: Waiting

    /// The read event stays armed between waits, which saves two system calls for each request; input that
    /// arrives while no task waits for it disarms the event.
    private func untilReadable() async throws(StreamError) {
        // One task reads at a time: a second continuation would replace the first, which would never
        // resume.
        guard !isClosed, !awaitsInput else { throw .closed }
        guard readDeadline > loop.seconds else { throw .timedOut }
        armRead()
        isSuspended = true
        try settle(await withUnsafeContinuation { reader = $0 })
    }

    private func untilWritable() async throws(StreamError) {
        guard !isClosed, writer == nil, let writeEvent else { throw .closed }
        guard writeDeadline > loop.seconds else { throw .timedOut }
        event_add(writeEvent, nil)
        pace?.beginsWait(unsent: Int(cs_unsent_bytes(descriptor)), now: loop.seconds)
        isSuspended = true
        try settle(await withUnsafeContinuation { writer = $0 })
    }

    private func settle(_ wake: Wake) throws(StreamError) {
        hasJustWaited = true
        isSuspended = false
        if let share { loop.charge(share) }
        switch wake {
        case .ready:
            // The stream may have been closed after it became ready and before its task ran: what the task
            // read before the wait (TLS object, descriptor) is then no longer the stream's.
            guard !isClosed else { throw .closed }
        case .timedOut: throw .timedOut
        case .closed: throw .closed
        }
    }

    /// Watches for input from now on; a pooled connection does this to notice that the peer closes.
    func armRead() {
        hasUnreadSignal = false
        guard !isReadArmed, let readEvent else { return }
        isReadArmed = true
        event_add(readEvent, nil)
    }

    private func didBecomeReadable() {
        loop.didReportInput()
        if waiter != nil, waiterOrder == .afterPoll {
            guard !isReported else { return }
            isReported = true
            return loop.deferWaiter(of: self)
        }
        if awaitsInput { return resumeReader(.ready) }
        hasUnreadSignal = true
        isReadArmed = false
        if let readEvent { event_del(readEvent) }
    }

    /// Does nothing if the wait has ended meanwhile.
    func callDeferredWaiter() {
        isReported = false
        if waiter != nil { resumeReader(.ready) }
    }

    private func resumeReader(_ wake: Wake) {
        if let waiter = waiter.take() {
            hasJustWaited = true
            isSuspended = false
            return waiter.didWake(stream: self, by: wake)
        }
        guard let continuation = reader else { return }
        reader = nil
        continuation.resume(returning: wake)
    }

    private func resumeWriter(_ wake: Wake) {
        guard let continuation = writer else { return }
        writer = nil
        if wake != .ready, let writeEvent { event_del(writeEvent) }
        continuation.resume(returning: wake)
    }
}

/// When a ``StreamWaiter`` is called for input.
enum WaiterOrder {
    /// By the poller, as it reports the input.
    case atOnce
    /// When the loop has been told of all that its poll has found: a request that is served then knows which
    /// upstream connections have been closed.
    case afterPoll
}

/// Waits for a stream's input without a task. Confined to the stream's loop.
protocol StreamWaiter: AnyObject {
    /// Called once for each ``Stream/awaitInput(for:)``. By the loop for `.ready`, and then as the only
    /// code that runs; for the other cases from within any code that closes streams or ends waits, so that
    /// the waiter may only schedule work.
    func didWake(stream: Stream, by wake: Stream.Wake)
}
